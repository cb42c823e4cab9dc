package stats

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// vectors are reference numbers computed elsewhere, each from the formula named beside it.
type vectors struct {
	QuantileCI struct {
		Rows []struct {
			N          int     `json:"n"`
			Q          float64 `json:"q"`
			Confidence float64 `json:"confidence"`
			Lo         int     `json:"lo_order"`
			Hi         int     `json:"hi_order"`
			Coverage   float64 `json:"coverage"`
		} `json:"rows"`
	} `json:"quantile_ci_exact_binomial"`
	MannWhitney []struct {
		X                []float64 `json:"x"`
		Y                []float64 `json:"y"`
		U                float64   `json:"u_x"`
		Exact            float64   `json:"p_two_sided_exact"`
		Normal           float64   `json:"p_asymptotic_cc"`
		MoreMath         float64   `json:"p_go_moremath_exact_with_ties"`
		ExactPermutation float64   `json:"p_exact_permutation"`
	} `json:"mann_whitney"`
	HodgesLehmann struct {
		X          []float64  `json:"x"`
		Y          []float64  `json:"y"`
		Shift      float64    `json:"shift"`
		CI         [2]float64 `json:"ci95"`
		Confidence float64    `json:"actual_confidence"`
		K          int        `json:"k"`
	} `json:"hodges_lehmann"`
	MinP []struct {
		N int     `json:"n"`
		P float64 `json:"min_p_two_sided"`
	} `json:"mann_whitney_min_p"`
	MSER5 struct {
		Series        []float64 `json:"series"`
		Batch         int       `json:"batch"`
		Batches       int       `json:"batches"`
		MinValue      float64   `json:"min_value"`
		DBatches      int       `json:"d_batches"`
		Drop          int       `json:"drop_observations"`
		TruncatedMean float64   `json:"truncated_mean"`
		AtZero        float64   `json:"value_at_d0"`
	} `json:"mser5"`
	USL struct {
		N      []float64 `json:"n"`
		ExactX []float64 `json:"exact_x"`
		Params uslParams `json:"params"`
		NStar  float64   `json:"n_star"`
		XStar  float64   `json:"x_at_n_star"`
		NoisyX []float64 `json:"noisy_x"`
		Noisy  uslParams `json:"noisy_least_squares"`
	} `json:"usl"`
	Kneedle []struct {
		Name string    `json:"name"`
		X    []float64 `json:"x"`
		Y    []float64 `json:"y"`
		S    float64   `json:"S"`
		Knee float64   `json:"knee_x"`
	} `json:"kneedle"`
	Trend []struct {
		Series      []float64 `json:"series"`
		MannKendall struct {
			S   int     `json:"S"`
			Var float64 `json:"var"`
			Z   float64 `json:"z"`
			P   float64 `json:"p"`
		} `json:"mann_kendall"`
		TheilSen float64 `json:"theil_sen"`
		Pettitt  struct {
			K    int     `json:"K"`
			Last int     `json:"last_index_of_first_segment"`
			P    float64 `json:"p"`
		} `json:"pettitt"`
	} `json:"trend"`
	QueriesForMargin []struct {
		P      float64 `json:"p"`
		Margin float64 `json:"margin"`
		N      float64 `json:"n"`
	} `json:"queries_for_margin"`
	Coverage struct {
		Rows []coverageRow `json:"rows"`
	} `json:"coverage_simulation"`
}

type uslParams struct {
	Lambda float64 `json:"lambda_"`
	Sigma  float64 `json:"sigma"`
	Kappa  float64 `json:"kappa"`
	NStar  float64 `json:"n_star"`
}

type coverageRow struct {
	N     int     `json:"n"`
	Rho   float64 `json:"rho"`
	Q     float64 `json:"q"`
	IID   float64 `json:"iid"`
	Sec10 float64 `json:"sec10"`
}

func readVectors(t *testing.T) vectors {
	t.Helper()
	b, err := os.ReadFile("testdata/stats_vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// near fails unless got is want to within a relative error (absolute below 1).
func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*math.Max(1, math.Abs(want))) {
		t.Errorf("%s is %.15g, want %.15g", what, got, want)
	}
}

// relative fails unless got is want to within a relative error.
func relative(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
		t.Errorf("%s is %.15g, want %.15g", what, got, want)
	}
}

// must fails unless a value is defined.
func must[T any](t *testing.T, what string) func(v T, ok bool) T {
	return func(v T, ok bool) T {
		t.Helper()
		if !ok {
			t.Fatalf("%s is not defined", what)
		}
		return v
	}
}
