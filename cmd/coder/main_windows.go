// Command coder, where it cannot run.
package main

import (
	"os"
)

// There is no native build: its commands, its sandbox and its terminal are
// those of a Unix system, and a half of them would promise what it cannot keep.
func main() {
	_, _ = os.Stderr.WriteString("coder runs on Linux and macOS. On Windows, run it inside WSL (https://learn.microsoft.com/windows/wsl): `wsl --install`, then use the Linux program there.\n")
	os.Exit(2)
}
