// Package lazy delays costly work until its first use, so that the start of the program does not pay for
// it.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function that compiles expr on its first call, which panics if expr is invalid.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
