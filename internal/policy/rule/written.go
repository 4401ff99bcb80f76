package rule

import (
	"net"
	"path"
	"slices"
	"strings"
)

// written returns grants as equivalent rules, or nil if one of them has no equivalent.
func (b *Book) written(grants []Grant) (rules []string) {
	for _, g := range grants {
		specs := b.specs(g)
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

// specs returns the rules that together are equivalent to a grant.
func (b *Book) specs(g Grant) []Spec {
	file := func(place string) string {
		if !path.IsAbs(place) {
			place = path.Join(b.Root, place)
		}
		return literally.Replace(place)
	}
	switch g.Kind {
	case Command, Line:
		if strings.Contains(g.What, "*") { // in a rule it matches any text
			return nil
		}
		return []Spec{{Tool: Commands, On: g.What}}
	case Reading:
		return []Spec{{Tool: Reads, On: file(g.What)}}
	case Changes:
		return []Spec{{Tool: Writes, On: file(g.What)}}
	case Below:
		return []Spec{{Tool: Writes, On: file(g.What) + "/**"}}
	case Host:
		if _, _, err := net.SplitHostPort(g.What); err == nil {
			return []Spec{{Tool: Fetches, On: "domain:" + g.What}}
		}
		// A domain alone also covers its subdomains.
		return []Spec{{Tool: Fetches, On: "domain:" + net.JoinHostPort(g.What, "443")}, {Tool: Fetches, On: "domain:" + net.JoinHostPort(g.What, "80")}}
	case Use:
		return []Spec{{Tool: g.What}}
	}
	return nil
}

// literally escapes a path into a pattern that covers only this path.
var literally = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`)
