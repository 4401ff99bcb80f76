package search

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"coder/internal/host/workspace"
)

// include says which files a grep looks at: those that one of want matches, all
// if there is none, save those that one of not matches. Where a glob can be
// read in several ways each of them counts, so that nothing is missed.
type include struct {
	base      string // the directory that is searched
	want, not []mask
}

// mask is one way to read a glob.
type mask struct {
	pattern string
	of      func(base, rel string) string // what it is matched with
}

func baseName(_, rel string) string    { return path.Base(rel) }
func fromBase(_, rel string) string    { return rel }
func fromRoot(base, rel string) string { return path.Join(base, rel) }

func (g include) matches(rel string) bool {
	fits := func(one mask) bool { return doublestar.MatchUnvalidated(one.pattern, one.of(g.base, rel)) }
	return (len(g.want) == 0 || slices.ContainsFunc(g.want, fits)) && !slices.ContainsFunc(g.not, fits)
}

// newInclude reads what files to look at below base: globs in a list, some of
// which may begin with "!".
func newInclude(ws *workspace.Workspace, base, text string) (g include, err error) {
	g.base = base
	if text == "" {
		return g, nil
	}
	if err := checkGlob(text); err != nil {
		return g, fmt.Errorf("include: %w", err)
	}
	for _, item := range items(text) {
		rest, negated := strings.CutPrefix(item, "!")
		list, err := includeOf(ws, base, rest)
		switch {
		case err != nil:
			return g, fmt.Errorf("include: %w", err)
		case negated:
			g.not = append(g.not, list...)
		default:
			g.want = append(g.want, list...)
		}
	}
	return g, nil
}

// includeOf are the ways to read one glob.
func includeOf(ws *workspace.Workspace, base, item string) (list []mask, err error) {
	if item, err = inTree(ws, base, item); err != nil {
		return nil, err
	}
	add := func(pattern string, of ...func(base, rel string) string) {
		for _, p := range readings(pattern) {
			for _, o := range of {
				list = append(list, mask{p, o})
			}
		}
	}
	of := []func(base, rel string) string{fromBase, fromRoot}
	if base == "." {
		of = of[:1]
	}
	dir, folder := strings.CutSuffix(item, "/")
	plain := !strings.ContainsAny(dir, `*?{`)
	deep := dir
	if !strings.ContainsAny(dir, `/\`) {
		deep = "**/" + dir
		if !folder {
			add(dir, baseName)
		}
		if plain && strings.HasPrefix(dir, ".") {
			add("*"+dir, baseName) // the ending of a name
		}
	} else if !folder {
		add(dir, of...)
	}
	if plain || folder {
		add(deep+"/**", of...) // the name of a folder
	}
	return list, nil
}

// inTree is a glob as seen from the directory that is searched, or from the
// root of the workspace.
func inTree(ws *workspace.Workspace, base, item string) (string, error) {
	for strings.HasPrefix(item, "./") {
		item = item[2:]
	}
	if slices.Contains(strings.Split(item, "/"), "..") {
		return "", fmt.Errorf("pattern %q: .. is not allowed", item)
	}
	if item == "" {
		return "", errors.New("pattern is empty")
	}
	if !path.IsAbs(item) {
		return item, nil
	}
	dir, rest := doublestar.SplitPattern(item)
	at, err := ws.Resolve(unescape(dir))
	switch {
	case err == nil && at == ".":
		return rest, nil
	case err == nil:
		return wildcards.Replace(at) + "/" + rest, nil
	}
	top, _, _ := strings.Cut(strings.TrimPrefix(dir, "/"), "/") // or it is meant from the base on
	if _, missing := ws.Stat(path.Join(base, unescape(top))); missing != nil {
		return "", err
	}
	return strings.TrimLeft(item, "/"), nil
}

// items parts a list of globs at the commas that stand in no braces, and at
// spaces if each part is clearly a glob.
func items(text string) (list []string) {
	depth, from := 0, 0
	cut := func(to int) {
		if item := unwrapped(strings.TrimSpace(text[from:to])); item != "" {
			list = append(list, item)
		}
		from = to + 1
	}
	for i, c := range text {
		switch {
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == ',' && depth <= 0:
			cut(i)
		}
	}
	cut(len(text))
	for _, sep := range []string{"|", ";"} {
		if parts := strings.Split(text, sep); len(list) == 1 && len(parts) > 1 && !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(p, "*") }) {
			return items(strings.Join(parts, ","))
		}
	}
	if len(list) == 1 {
		fields := strings.Fields(text)
		if !slices.ContainsFunc(fields, func(f string) bool { return !strings.ContainsAny(f, "*!") }) {
			for i := range fields {
				fields[i] = unwrapped(fields[i])
			}
			return fields
		}
	}
	return list
}

// unwrapped is a glob without the quotes of a shell.
func unwrapped(item string) string {
	for _, q := range []string{`"`, `'`} {
		if s, ok := strings.CutPrefix(item, q); ok && strings.HasSuffix(s, q) {
			return strings.TrimSuffix(s, q)
		}
	}
	return item
}

// readings are the patterns that a glob may stand for: itself; with brackets
// that are part of a name, as in app/[slug]; with the separators of Windows.
func readings(pattern string) []string {
	list := []string{pattern}
	if strings.ContainsAny(pattern, "[") && !strings.Contains(pattern, `\[`) {
		list = append(list, brackets.Replace(pattern))
	}
	if strings.Contains(pattern, `\`) {
		slashes := strings.ReplaceAll(pattern, `\`, "/")
		if list = append(list, slashes); strings.Contains(slashes, "[") {
			list = append(list, brackets.Replace(slashes))
		}
	}
	return slices.DeleteFunc(list, func(p string) bool { return !doublestar.ValidatePattern(p) })
}

// wildcards takes from a path what would be one.
var wildcards = strings.NewReplacer("[", `\[`, "]", `\]`, "*", `\*`, "?", `\?`, "{", `\{`, "}", `\}`, `\`, `\\`)

var brackets = strings.NewReplacer("[", `\[`, "]", `\]`)
