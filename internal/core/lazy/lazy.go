// Package lazy makes what costs time when it is first used, so that a start of
// the program does not pay for what that run never needs.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp is an expression that is compiled when it is first asked for. One that
// cannot be compiled panics then.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
