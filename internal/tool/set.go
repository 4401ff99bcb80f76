package tool

import (
	"errors"
	"fmt"
	"iter"
)

// Set is an immutable, ordered collection of tools. A turn takes one Set at
// its start and uses it throughout, so what is advertised is what can run.
type Set struct {
	order   []Tool
	specs   []Spec
	dialect string
	byName  map[string]int // folded name or alias → index
	off     func(name string) bool
}

// NewSet gathers tools, refusing bad or repeated names. A name beats an alias,
// an earlier alias a later one.
func NewSet(tools ...Tool) (Set, error) {
	s := Set{order: tools, byName: make(map[string]int, 3*len(tools))}
	for i, t := range tools {
		spec := t.Spec()
		if spec.Name == "" {
			return Set{}, errors.New("tool without a name")
		}
		if _, dup := s.byName[fold(spec.Name)]; dup {
			return Set{}, fmt.Errorf("tool %q twice", spec.Name)
		}
		s.byName[fold(spec.Name)] = i
		s.specs = append(s.specs, spec)
	}
	for i, spec := range s.specs {
		for _, a := range spec.Aliases {
			if _, taken := s.byName[fold(a.Name)]; !taken {
				s.byName[fold(a.Name)] = i
			}
		}
	}
	return s, nil
}

// In returns s advertising its tools under their names in dialect; "" means
// their own.
func (s Set) In(dialect string) Set {
	s.dialect = dialect
	return s
}

// Without returns s with the tools that off names switched off: they are not
// advertised. They can still be looked up, so that a model which calls one
// nevertheless is told why it may not.
func (s Set) Without(off func(name string) bool) Set {
	s.off = off
	return s
}

// Off reports whether the tool of this name is switched off.
func (s Set) Off(name string) bool {
	i, ok := s.byName[fold(name)]
	return ok && s.off != nil && s.off(s.specs[i].Name)
}

// Lookup finds a tool by its name or an alias, in any case.
func (s Set) Lookup(name string) (Tool, bool) {
	i, ok := s.byName[fold(name)]
	if !ok {
		return nil, false
	}
	return s.order[i], true
}

// Len is how many tools there are.
func (s Set) Len() int { return len(s.order) }

// Specs yields the tools' descriptions in order, named in the set's dialect.
func (s Set) Specs() iter.Seq[Spec] {
	return func(yield func(Spec) bool) {
		for _, sp := range s.specs {
			if s.off != nil && s.off(sp.Name) {
				continue
			}
			for _, a := range sp.Aliases {
				if a.Dialect != "" && a.Dialect == s.dialect {
					sp.Name = a.Name
				}
			}
			if !yield(sp) {
				return
			}
		}
	}
}
