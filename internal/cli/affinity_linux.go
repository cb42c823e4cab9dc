package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// splitCPUs gives a server the first processor that this process may use, and itself the others; empty where there is only one.
func splitCPUs() (server, mine string) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil || set.Count() < 2 {
		return "", ""
	}
	var all []string
	for i := 0; len(all) < set.Count(); i++ {
		if set.IsSet(i) {
			all = append(all, strconv.Itoa(i))
		}
	}
	return all[0], strings.Join(all[1:], ",")
}

// pin binds all threads of this process, and those that they start, to a list of processors such as 0,2.
func pin(list string) error {
	var set unix.CPUSet
	for _, f := range strings.Split(list, ",") {
		n, err := strconv.Atoi(f)
		if err != nil || n < 0 || n >= 1024 {
			return fmt.Errorf("%q is no list of processors such as 0,2", list)
		}
		set.Set(n)
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		if err := unix.SchedSetaffinity(id, &set); err != nil && err != unix.ESRCH { // it may have ended meanwhile
			return err
		}
	}
	return nil
}
