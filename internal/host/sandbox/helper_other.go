//go:build !linux

package sandbox

import (
	"fmt"
	"os"
)

// Main is the helper, which only Linux needs. It runs nothing.
func Main([]string) int {
	fmt.Fprintln(os.Stderr, SetupPrefix+"there is no helper on this system")
	return SetupCode
}
