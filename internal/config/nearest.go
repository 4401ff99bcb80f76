package config

import "coder/internal/core/nearest"

// suggest names the key that was meant by name in block f, as "; did you
// mean …?", or nothing.
func (root *field) suggest(f *field, name string) string {
	var siblings []string
	for _, k := range f.kids {
		siblings = append(siblings, k.name())
	}
	if n := nearest.Of(name, siblings); n != "" {
		return didYouMean(join(f.path, n))
	}
	meant := ""
	root.all(func(k *field) {
		if meant == "" && k.name() == name && k.kind != rules {
			meant = k.path
		}
	})
	if meant == "" {
		return ""
	}
	return didYouMean(meant)
}

func didYouMean(s string) string { return `; did you mean "` + s + `"?` }
