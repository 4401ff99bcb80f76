package rule

import (
	"net"
	"path"
	"slices"
	"strings"
)

// equivalentRules returns grants as equivalent rules, or nil if one of them has no equivalent.
func (b *Book) equivalentRules(grants []Grant) (rules []string) {
	for _, g := range grants {
		specs := b.equivalentSpecs(g)
		if len(specs) == 0 {
			return nil
		}
		for _, s := range specs {
			if back, err := ParseSpecs(s.String() + ",x"); err != nil || !slices.Equal(back, []Spec{s, {Tool: "x"}}) {
				return nil // it would be parsed as something else
			}
			rules = append(rules, s.String())
		}
	}
	return rules
}

// equivalentSpecs returns the rules that together are equivalent to a grant.
func (b *Book) equivalentSpecs(g Grant) []Spec {
	file := func(place string) string {
		if !path.IsAbs(place) {
			place = path.Join(b.Root, place)
		}
		return patternEscaper.Replace(place)
	}
	switch g.Kind {
	case KindCommand, KindLine:
		if strings.Contains(g.What, "*") { // in a rule it matches any text
			return nil
		}
		return []Spec{{Tool: ClassCommand, On: g.What}}
	case KindRead:
		return []Spec{{Tool: ClassRead, On: file(g.What)}}
	case KindEdit:
		return []Spec{{Tool: ClassWrite, On: file(g.What)}}
	case KindFolder:
		return []Spec{{Tool: ClassWrite, On: file(g.What) + "/**"}}
	case KindFetch:
		if _, _, err := net.SplitHostPort(g.What); err == nil {
			return []Spec{{Tool: ClassFetch, On: "domain:" + g.What}}
		}
		// A domain alone also covers its subdomains.
		return []Spec{{Tool: ClassFetch, On: "domain:" + net.JoinHostPort(g.What, "443")},
			{Tool: ClassFetch, On: "domain:" + net.JoinHostPort(g.What, "80")}}
	case KindTool:
		return []Spec{{Tool: g.What}}
	}
	return nil
}

// patternEscaper escapes a path into a pattern that covers only this path.
var patternEscaper = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`)
