package arch

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// TestEverySettingIsReadBySomething finds, for each setting that the schema
// describes, a place outside config that uses it. A setting that nothing reads
// does nothing.
func TestEverySettingIsReadBySomething(t *testing.T) {
	fset := token.NewFileSet()
	settings := typesOf(t, fset, "config", nil, nil)
	modes := typesOf(t, fset, filepath.Join("policy", "mode"), nil, nil)
	used := make(map[types.Object]bool)
	uses := &types.Info{Selections: make(map[*ast.SelectorExpr]*types.Selection)}
	wiring := typesOf(t, fset, "app", only{settings, modes}, uses)
	typesOf(t, fset, "cli", only{settings, modes, wiring}, uses)
	for _, s := range uses.Selections {
		used[s.Obj()] = true
	}
	root := settings.Scope().Lookup("Config").Type()
	n := eachSetting(root, "", func(key string, field types.Object) {
		if !used[field] {
			t.Errorf("%s is read by nothing", key)
		}
	})
	if n < 50 {
		t.Fatalf("only %d settings were found", n)
	}
}

// eachSetting names every setting in a struct of them, and counts them.
func eachSetting(t types.Type, at string, visit func(key string, field types.Object)) (n int) {
	s := t.Underlying().(*types.Struct)
	for i := range s.NumFields() {
		name, _, _ := strings.Cut(strings.TrimPrefix(s.Tag(i), `json:"`), `"`)
		name, _, _ = strings.Cut(name, ",")
		key := strings.Trim(at+"."+name, ".")
		if _, block := s.Field(i).Type().Underlying().(*types.Struct); block {
			n += eachSetting(s.Field(i).Type(), key, visit)
		}
		visit(key, s.Field(i))
		n++
	}
	return n
}

// typesOf checks the types of one package, knowing nothing of the others but
// known: what is about those is unclear, and is passed over.
func typesOf(t *testing.T, fset *token.FileSet, pkg string, known only, info *types.Info) *types.Package {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("..", pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if ok, err := build.Default.MatchFile(filepath.Split(name)); err != nil || !ok || strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	conf := types.Config{Importer: known, Error: func(error) {}}
	checked, _ := conf.Check("coder/internal/"+pkg, fset, files, info) // what it complains of is what it was not told
	return checked
}

// only imports these packages; all others are empty.
type only []*types.Package

func (o only) Import(name string) (*types.Package, error) {
	for _, p := range o {
		if p.Path() == name {
			return p, nil
		}
	}
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}
