package config

import (
	"maps"
	"reflect"
	"slices"

	"coder/internal/core/message"

	"github.com/tailscale/hujson"
)

// allowsChange reports whether an untrusted project may change f from old to now.
func (f *field) allowsChange(old, now reflect.Value) bool {
	switch f.projectRule() {
	case "free":
		return true
	case "lower":
		return now.Int() <= old.Int()
	case "narrower":
		return true // narrower already removed what is not allowed
	case "off":
		return !now.Bool()
	case "stricter":
		return f.enumRank(now.String()) <= f.enumRank(old.String())
	}
	return false
}

// enumRank returns the index of value in f's enum; 0 is the strictest.
func (f *field) enumRank(value string) int { return slices.Index(f.enum(), value) }

// toolRule is one rule in a file.
type toolRule struct {
	pattern string
	value   string
	offset  int
}

// applyRules applies one tool's rules in the block f to its existing rules. A verdict
// alone replaces them all; verdicts by pattern replace those with the same pattern.
func (y *layer) applyRules(f *field, tool string, v hujson.Value) {
	given, ok := y.parseRules(f, tool, v)
	if !ok {
		return
	}
	if y.untrusted {
		y.applyStricter(f.catchAll, tool, given)
		return
	}
	if _, alone := v.Value.(hujson.Literal); alone {
		for pattern := range y.cfg.Permission.Tools[tool] {
			delete(y.report.origins, rulePath(tool, pattern))
		}
		delete(y.cfg.Permission.Tools, tool)
	}
	for _, g := range given {
		y.applyRule(tool, g)
	}
}

func (y *layer) applyRule(tool string, g toolRule) {
	tools := y.cfg.Permission.Tools
	if tools[tool] == nil {
		tools[tool] = Rules{}
	}
	tools[tool][g.pattern] = g.value
	y.recordOrigin(g.offset, rulePath(tool, g.pattern))
}

func rulePath(tool, pattern string) string {
	return EntryKey(EntryKey("permission", tool), pattern)
}

// parseRules parses "ask", or {"pattern": "ask"}.
func (y *layer) parseRules(f *field, tool string, v hujson.Value) (given []toolRule, ok bool) {
	path := EntryKey(f.path, tool)
	one := func(path, pattern string, v hujson.Value) {
		lit, _ := v.Value.(hujson.Literal)
		if s := lit.String(); lit.Kind() == '"' && slices.Contains(f.catchAll.enum(), s) {
			given = append(given, toolRule{pattern, s, v.StartOffset})
			return
		}
		ok = false
		y.addValueError(v, path, message.Errorf("expected %s, found %s", listValues(f.catchAll.enum()),
			describeFound(v)))
	}
	ok = true
	switch v.Value.(type) {
	case hujson.Literal:
		one(path, "*", v)
	case *hujson.Object:
		y.eachMember(path, v, func(pattern string, m hujson.ObjectMember) { one(EntryKey(path, pattern), pattern, m.Value) })
	default:
		y.addValueError(v, path, message.Errorf("expected %s, or an object of them by pattern, found %s%s",
			listValues(f.catchAll.enum()), describeFound(v), y.root.suggestKey(f, tool)))
		return nil, false
	}
	return given, ok
}

// applyStricter applies only those of the given rules that are stricter. It can lower
// a rule that the user has. A rule that the user does not have may override any
// other, so it must be as strict as the strictest of the user's rules.
func (y *layer) applyStricter(f *field, tool string, given []toolRule) {
	had := maps.Clone(y.cfg.Permission.Tools[tool])
	for _, g := range given {
		old, known := had[g.pattern]
		switch {
		case known && f.enumRank(g.value) < f.enumRank(old), !known && f.enumRank(g.value) <= y.minRank:
			y.applyRule(tool, g)
		case !known || old != g.value:
			y.addWarning(g.offset, rulePath(tool, g.pattern), "would loosen a rule")
		}
		if g.pattern == "*" {
			for pattern, value := range y.cfg.Permission.Tools[tool] {
				if f.enumRank(g.value) < f.enumRank(value) {
					y.applyRule(tool, toolRule{pattern, g.value, g.offset})
				}
			}
		}
	}
}

// strictestRank returns the rank of the strictest current verdict.
func (l *loader) strictestRank() int {
	p, f := l.cfg.Permission, l.root.childByName["permission"].catchAll
	least := f.enumRank(p.Default)
	for _, rules := range p.Tools {
		for _, v := range rules {
			least = min(least, f.enumRank(v))
		}
	}
	return least
}
