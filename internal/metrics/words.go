package metrics

import (
	"math"
	"strconv"
	"strings"
)

// three writes a number for a person: with three significant digits, at most four decimals, commas between thousands, and never with
// an exponent.
func three(v float64) string {
	whole, decimals := v, 0
	if a := math.Abs(v); a > 0 {
		digit := int(math.Floor(math.Log10(a))) // of ten's power of the first digit
		if unit := math.Pow10(digit - 2); unit >= 1 {
			whole = math.Round(v/unit) * unit
		} else {
			decimals = min(2-digit, 4)
		}
	}
	s := strconv.FormatFloat(whole, 'f', decimals, 64)
	digits, rest, point := strings.Cut(s, ".")
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if point {
		digits += "." + rest
	}
	return digits
}

// Three writes a number for a person, as in caveats.
func Three(v float64) string { return three(v) }
