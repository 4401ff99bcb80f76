package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// Start-up runs the init of every package that is linked, used or not. No
// package may allocate much there: allocations, unlike times, are the same on
// every machine.
const (
	mostPerPackage = 1000
	mostInAll      = 3000
)

var initLine = regexp.MustCompile(`^init (\S+) @\S+ ms, \S+ ms clock, (\d+) bytes, (\d+) allocs$`)

// TestStartUpStaysSmall reads what the runtime says about package inits.
func TestStartUpStaysSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	bin := filepath.Join(t.TempDir(), "coder")
	build := exec.Command("go", "build", "-o", bin, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := exec.Command(bin, "version")
	c.Env = []string{"GODEBUG=inittrace=1"}
	var trace bytes.Buffer
	c.Stderr = &trace
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	sum, packages := 0, 0
	for in := bufio.NewScanner(&trace); in.Scan(); {
		m := initLine.FindStringSubmatch(in.Text())
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(m[3])
		if err != nil {
			t.Fatal(err)
		}
		packages++
		if sum += n; n > mostPerPackage {
			t.Errorf("%s makes %d allocations when the program starts", m[1], n)
		}
	}
	if packages == 0 || sum > mostInAll {
		t.Errorf("%d packages make %d allocations when the program starts", packages, sum)
	}
	t.Logf("%d packages, %d allocations", packages, sum)
}
