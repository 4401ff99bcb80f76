package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/tailscale/hujson"
)

// mayBecome reports whether an untrusted project may change f from old to now.
func (f *field) mayBecome(old, now reflect.Value) bool {
	switch f.project() {
	case "free":
		return true
	case "lower":
		return now.Int() <= old.Int()
	case "narrower":
		return true // narrower already removed what is not allowed
	case "off":
		return !now.Bool()
	case "stricter":
		return f.rank(now.String()) <= f.rank(old.String())
	}
	return false
}

// rank returns the index of value in f's enum; 0 is the strictest.
func (f *field) rank(value string) int { return slices.Index(f.enum(), value) }

// verdict is one rule in a file.
type verdict struct {
	pattern string
	value   string
	offset  int
}

// rules applies one tool's rules in the block f to its existing rules. A verdict
// alone replaces them all; verdicts by pattern replace those with the same pattern.
func (y *layer) rules(f *field, tool string, v hujson.Value) {
	given, ok := y.verdicts(f, tool, v)
	if !ok {
		return
	}
	if y.untrusted {
		y.tighten(f.rest, tool, given)
		return
	}
	if _, alone := v.Value.(hujson.Literal); alone {
		for pattern := range y.cfg.Permission.Tools[tool] {
			delete(y.report.origins, rulePath(tool, pattern))
		}
		delete(y.cfg.Permission.Tools, tool)
	}
	for _, g := range given {
		y.rule(tool, g)
	}
}

func (y *layer) rule(tool string, g verdict) {
	tools := y.cfg.Permission.Tools
	if tools[tool] == nil {
		tools[tool] = Rules{}
	}
	tools[tool][g.pattern] = g.value
	y.took(g.offset, rulePath(tool, g.pattern))
}

func rulePath(tool, pattern string) string {
	return Entry(Entry("permission", tool), pattern)
}

// verdicts parses "ask", or {"pattern": "ask"}.
func (y *layer) verdicts(f *field, tool string, v hujson.Value) (given []verdict, ok bool) {
	path := Entry(f.path, tool)
	one := func(path, pattern string, v hujson.Value) {
		lit, _ := v.Value.(hujson.Literal)
		if s := lit.String(); lit.Kind() == '"' && slices.Contains(f.rest.enum(), s) {
			given = append(given, verdict{pattern, s, v.StartOffset})
			return
		}
		ok = false
		y.mistake(v, path, fmt.Errorf("expected %s, found %s", oneOf(f.rest.enum()), found(v)))
	}
	ok = true
	switch v.Value.(type) {
	case hujson.Literal:
		one(path, "*", v)
	case *hujson.Object:
		y.members(path, v, func(pattern string, m hujson.ObjectMember) { one(Entry(path, pattern), pattern, m.Value) })
	default:
		y.mistake(v, path, fmt.Errorf("expected %s, or an object of them by pattern, found %s%s",
			oneOf(f.rest.enum()), found(v), y.root.suggest(f, tool)))
		return nil, false
	}
	return given, ok
}

// tighten applies only those of the given rules that are stricter. It can lower
// a rule that the user has. A rule that the user does not have may override any
// other, so it must be as strict as the strictest of the user's rules.
func (y *layer) tighten(f *field, tool string, given []verdict) {
	had := maps.Clone(y.cfg.Permission.Tools[tool])
	for _, g := range given {
		old, known := had[g.pattern]
		switch {
		case known && f.rank(g.value) < f.rank(old), !known && f.rank(g.value) <= y.floor:
			y.rule(tool, g)
		case !known || old != g.value:
			y.warn(g.offset, rulePath(tool, g.pattern), "it would loosen a rule")
		}
		if g.pattern == "*" {
			for pattern, value := range y.cfg.Permission.Tools[tool] {
				if f.rank(g.value) < f.rank(value) {
					y.rule(tool, verdict{pattern, g.value, g.offset})
				}
			}
		}
	}
}

// strictest returns the rank of the strictest current verdict.
func (l *loader) strictest() int {
	p, f := l.cfg.Permission, l.root.byName["permission"].rest
	least := f.rank(p.Default)
	for _, rules := range p.Tools {
		for _, v := range rules {
			least = min(least, f.rank(v))
		}
	}
	return least
}
