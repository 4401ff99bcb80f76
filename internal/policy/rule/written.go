package rule

import (
	"net"
	"path"
	"slices"
	"strings"
)

// written is grants as rules that reach no further, nil if one of them cannot be
// written so.
func (b *Book) written(grants []Grant) (rules []string) {
	for _, g := range grants {
		specs := b.specs(g)
		if len(specs) == 0 {
			return nil
		}
		for _, s := range specs {
			if back, err := ParseSpecs(s.String() + ",x"); err != nil || !slices.Equal(back, []Spec{s, {Tool: "x"}}) {
				return nil // it would be read as something else
			}
			rules = append(rules, s.String())
		}
	}
	return rules
}

// specs are the rules that say together what a grant says.
func (b *Book) specs(g Grant) []Spec {
	file := func(place string) string {
		if !path.IsAbs(place) {
			place = path.Join(b.Root, place)
		}
		return literally.Replace(place)
	}
	switch g.Kind {
	case Command, Line:
		if strings.Contains(g.What, "*") { // in a rule it stands for any text
			return nil
		}
		return []Spec{{Commands, g.What}}
	case Reading:
		return []Spec{{Reads, file(g.What)}}
	case Changes:
		return []Spec{{Writes, file(g.What)}}
	case Below:
		return []Spec{{Writes, file(g.What) + "/**"}}
	case Host:
		if _, _, err := net.SplitHostPort(g.What); err == nil {
			return []Spec{{Fetches, "domain:" + g.What}}
		}
		// A domain alone covers those below it, too.
		return []Spec{{Fetches, "domain:" + net.JoinHostPort(g.What, "443")}, {Fetches, "domain:" + net.JoinHostPort(g.What, "80")}}
	case Use:
		return []Spec{{Tool: g.What}}
	}
	return nil
}

// literally writes a path as the pattern that covers it alone.
var literally = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`)
