// Command figures counts what can be counted about the house, street by street: make figures keeps it
// in docs/design/figures.md. It judges nothing: a figure that grows is a place to look.
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// What is counted as long, branching and wide.
const (
	longFunction = 60
	manyBranches = 15
	manyMethods  = 40
	manyFields   = 20
	longLine     = 120
	listed       = 10 // of each kind
)

// row is a street, or all of them.
type row struct {
	name                                              string
	lines, tests, functions, long, branching, long120 int
}

// found is something that stands out.
type found struct {
	name string
	n    int
}

// house is what was counted.
type house struct {
	streets         map[string]*row
	long, branching []found
	methods, fields map[string]int
}

func main() {
	h := house{streets: make(map[string]*row), methods: make(map[string]int), fields: make(map[string]int)}
	for _, top := range []string{"internal", "cmd", "fleet", "testkit"} {
		if err := filepath.WalkDir(top, h.visit); err != nil {
			fmt.Fprintln(os.Stderr, "figures:", err)
			os.Exit(1)
		}
	}
	h.print()
}

// visit counts a file.
func (h *house) visit(path string, d fs.DirEntry, err error) error {
	switch {
	case err != nil:
		return err
	case d.IsDir() && d.Name() == "testdata":
		return filepath.SkipDir
	case d.IsDir() || !strings.HasSuffix(path, ".go"):
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	name := strings.TrimPrefix(filepath.ToSlash(path), "internal/")
	street, _, _ := strings.Cut(name, "/")
	r := h.streets[street]
	if r == nil {
		r = &row{name: street}
		h.streets[street] = r
	}
	if strings.HasSuffix(path, "_test.go") {
		r.tests += bytes.Count(text, []byte("\n"))
		return nil
	}
	r.lines += bytes.Count(text, []byte("\n"))
	for line := range bytes.Lines(text) {
		if utf8.RuneCount(bytes.TrimRight(line, "\n")) > longLine {
			r.long120++
		}
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, 0)
	if err != nil {
		return err
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			h.function(r, name, decl, set)
		case *ast.GenDecl:
			h.types(filepath.ToSlash(filepath.Dir(name)), decl)
		}
	}
	return nil
}

func (h *house) function(r *row, file string, f *ast.FuncDecl, set *token.FileSet) {
	r.functions++
	lines, branches := set.Position(f.End()).Line-set.Position(f.Pos()).Line+1, branchesOf(f)
	if lines > longFunction {
		r.long++
		h.long = append(h.long, found{file + " " + f.Name.Name, lines})
	}
	if branches > manyBranches {
		r.branching++
		h.branching = append(h.branching, found{file + " " + f.Name.Name, branches})
	}
	if f.Recv != nil {
		h.methods[filepath.ToSlash(filepath.Dir(file))+"."+receiver(f.Recv.List[0].Type)]++
	}
}

// types counts the fields of structs.
func (h *house) types(pkg string, decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		t, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		if s, ok := t.Type.(*ast.StructType); ok {
			for _, f := range s.Fields.List {
				h.fields[pkg+"."+t.Name.Name] += max(1, len(f.Names))
			}
		}
	}
}

// branchesOf is in how many ways a function can be walked through, at least.
func branchesOf(f *ast.FuncDecl) int {
	n := 1
	ast.Inspect(f, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if x.List != nil {
				n++
			}
		case *ast.CommClause:
			if x.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

func receiver(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return "?"
		}
	}
}

func (h *house) print() {
	order := []string{"core", "host", "config", "authored", "tool", "policy", "model", "record", "agent", "report", "ui",
		"slash", "app", "serve", "cli"}
	product, rest := row{name: "**the product**"}, []string{"cmd", "fleet", "testkit", "arch"}
	fmt.Printf("# Figures\n\nWhat can be counted about the house; `make figures` counts anew. Nothing here is a limit. A figure that grows is a place to look.\n\n")
	fmt.Printf("| street | lines | tests | functions | over %d lines | over %d branches | lines over %d columns |\n|---|--:|--:|--:|--:|--:|--:|\n", longFunction, manyBranches, longLine)
	for _, name := range order {
		r := h.streets[name]
		if r == nil {
			continue
		}
		product.add(*r)
		r.print()
	}
	product.print()
	for _, name := range rest {
		if r := h.streets[name]; r != nil {
			r.print()
		}
	}
	top("Longest functions, lines", h.long, 0)
	top("Most branches", h.branching, 0)
	top("Most methods", counted(h.methods), manyMethods)
	top("Most fields", counted(h.fields), manyFields)
}

func (r *row) add(o row) {
	r.lines, r.tests, r.functions = r.lines+o.lines, r.tests+o.tests, r.functions+o.functions
	r.long, r.branching, r.long120 = r.long+o.long, r.branching+o.branching, r.long120+o.long120
}

func (r row) print() {
	fmt.Printf("| %s | %d | %d | %d | %d | %d | %d |\n", r.name, r.lines, r.tests, r.functions, r.long, r.branching,
		r.long120)
}

func counted(all map[string]int) (list []found) {
	for name, n := range all {
		list = append(list, found{name, n})
	}
	return list
}

// top prints the most of a kind, and how many there are above a number.
func top(what string, list []found, above int) {
	slices.SortFunc(list, func(a, b found) int { return cmp.Or(b.n-a.n, strings.Compare(a.name, b.name)) })
	list = slices.DeleteFunc(list, func(f found) bool { return f.n <= above })
	fmt.Printf("\n%s (%d in all):\n\n", what, len(list))
	for _, f := range list[:min(len(list), listed)] {
		fmt.Printf("- %d · `%s`\n", f.n, f.name)
	}
}
