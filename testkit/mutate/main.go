// Command mutate breaks a package in small ways, one at a time, and tells which of them its own tests do not
// notice: make mutate P=./internal/policy. The tree stays as it is.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"coder/internal/host/program"
)

// mutant is one way to break a file.
type mutant struct {
	file string
	line int
	what string
	text []byte // of the file, broken
	rank uint64 // by chance, the same for a seed
}

// fate is what became of a mutant.
type fate string

const (
	killed   fate = "killed"
	survived fate = "survived"
	hung     fate = "killed by hanging"
	unfit    fate = "does not compile"
)

func main() {
	most := flag.Int("n", 40, "how many mutants of a package are tried")
	seed := flag.String("seed", "1", "chooses them")
	limit := flag.Duration("limit", 2*time.Minute, "how long the tests of one may take")
	crew := flag.Int("crew", 2, "how many are tried side by side")
	flag.Parse()
	failed := false
	for _, dir := range flag.Args() {
		score, err := try(dir, *seed, *most, *crew, *limit)
		if err != nil {
			fmt.Fprintln(os.Stderr, "mutate:", err)
			os.Exit(1)
		}
		failed = failed || score < 0.8
	}
	if failed {
		os.Exit(2)
	}
}

// try breaks the package in a folder, and returns which part of the mutants its tests noticed.
func try(dir, seed string, most, crew int, limit time.Duration) (float64, error) {
	all, err := mutants(dir, seed)
	if err != nil {
		return 0, err
	}
	if out, err := test(dir, "", limit); err != nil {
		return 0, fmt.Errorf("the tests of %s fail as they are:\n%s", dir, out)
	}
	counts := make(map[fate]int)
	var mu sync.Mutex // guards counts and what is printed
	next := make(chan mutant)
	var workers sync.WaitGroup
	for range crew {
		workers.Go(func() {
			for m := range next {
				f := m.fate(dir, limit)
				mu.Lock()
				counts[f]++
				if f == survived {
					fmt.Printf("  %s:%d: %s\n", m.file, m.line, m.what)
				}
				mu.Unlock()
			}
		})
	}
	fmt.Printf("%s: %d of %d mutants, seed %s; what its tests do not notice:\n", dir, min(most, len(all)), len(all), seed)
	for _, m := range all[:min(most, len(all))] {
		next <- m
	}
	close(next)
	workers.Wait()
	noticed := counts[killed] + counts[hung]
	score := float64(noticed) / float64(max(1, noticed+counts[survived]))
	fmt.Printf("%s: %.0f %% noticed: %d of %d (%d by hanging; %d more do not compile)\n", dir, 100*score, noticed,
		noticed+counts[survived], counts[hung], counts[unfit])
	return score, nil
}

// mutants are all ways to break the package in a folder, in an order by chance.
func mutants(dir, seed string) (all []mutant, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		list, err := breaks(name, text)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	for i, m := range all {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%s", seed, filepath.Base(m.file), m.line, m.what))
		all[i].rank = binary.BigEndian.Uint64(sum[:])
	}
	slices.SortFunc(all, func(a, b mutant) int {
		if a.rank < b.rank {
			return -1
		}
		return 1
	})
	return all, nil
}

var swaps = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ,
	token.GEQ:  token.GTR,
	token.LAND: token.LOR, token.LOR: token.LAND, token.ADD: token.SUB, token.SUB: token.ADD,
}

// breaks are the ways to break one file.
func breaks(name string, text []byte) (all []mutant, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	keep := func(at token.Pos, what string) {
		var b bytes.Buffer
		if format.Node(&b, set, file) == nil {
			all = append(all, mutant{file: name, line: set.Position(at).Line, what: what, text: b.Bytes()})
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if to, ok := swaps[n.Op]; ok {
				was := n.Op
				n.Op = to
				keep(n.OpPos, fmt.Sprintf("%s instead of %s", to, was))
				n.Op = was
			}
		case *ast.IfStmt:
			was := n.Cond
			n.Cond = &ast.UnaryExpr{Op: token.NOT, X: &ast.ParenExpr{X: was}}
			keep(n.If, "the condition turned round")
			n.Cond = was
		case *ast.Ident:
			if other := map[string]string{"true": "false", "false": "true"}[n.Name]; other != "" {
				was := n.Name
				n.Name = other
				keep(n.NamePos, other+" instead of "+was)
				n.Name = was
			}
		case *ast.BlockStmt:
			for i, s := range n.List {
				if call, ok := s.(*ast.ExprStmt); ok {
					n.List[i] = &ast.EmptyStmt{Semicolon: call.Pos()}
					keep(call.Pos(), "a call left out")
					n.List[i] = s
				}
			}
		}
		return true
	})
	return all, nil
}

// fate is what the tests of its package say of a mutant.
func (m mutant) fate(dir string, limit time.Duration) fate {
	stage, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return unfit
	}
	defer os.RemoveAll(stage)
	whole, err := filepath.Abs(m.file)
	broken, overlay := filepath.Join(stage, "broken.go"), filepath.Join(stage, "overlay.json")
	plan, _ := json.Marshal(map[string]any{"Replace": map[string]string{whole: broken}})
	if errors.Join(err, os.WriteFile(broken, m.text, 0o600), os.WriteFile(overlay, plan, 0o600)) != nil {
		return unfit
	}
	out, err := test(dir, overlay, limit)
	switch {
	case err == nil:
		return survived
	case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
		return unfit
	case strings.Contains(out, "test timed out"):
		return hung
	}
	return killed
}

// test runs the tests of the package in a folder.
func test(dir, overlay string, limit time.Duration) (string, error) {
	args := []string{"test", "-count=1", "-failfast", "-vet=off", "-timeout", limit.String()}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	ctx, stop := context.WithTimeout(context.Background(), limit+time.Minute)
	defer stop()
	path, err := program.LookPath("go")
	if err != nil {
		return "", err
	}
	cmd := program.TrustedCommand(ctx, path, append(args, dir)...)
	cmd.Env = append(os.Environ(), "RAPID_SEED=1", "RAPID_CHECKS=30")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
