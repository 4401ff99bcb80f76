package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/tailscale/hujson"
)

// mayBecome reports whether a project that is not trusted may change f from
// old to now.
func (f *field) mayBecome(old, now reflect.Value) bool {
	switch f.project() {
	case "free":
		return true
	case "lower":
		return now.Int() <= old.Int()
	case "narrower":
		return true // narrower left only what may be
	case "off":
		return !now.Bool()
	case "stricter":
		return f.rank(now.String()) <= f.rank(old.String())
	}
	return false
}

// rank is the place of value among f's, the strictest being 0.
func (f *field) rank(value string) int { return slices.Index(f.enum(), value) }

// verdict is one rule as a file gives it.
type verdict struct {
	pattern string
	value   string
	offset  int
}

// rules lays the rules of one tool, which stand in the block f, over those it
// has. A verdict alone replaces them all; verdicts by pattern replace those of
// the same pattern.
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

// verdicts reads "ask", or {"pattern": "ask"}.
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

// tighten takes from given only what makes things stricter. A rule the user
// has can be lowered. A rule the user does not have may shadow any other, so
// it must be as strict as the strictest of all the user has.
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

// strictest is the rank of the strictest verdict in force.
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
