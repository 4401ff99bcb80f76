package tool

import (
	"errors"
	"iter"
	"slices"

	"coder/internal/core/message"
)

// Set is an immutable, ordered collection of tools. A turn uses one
// Set from start to end, so what is advertised is what can run.
type Set struct {
	tools        []Tool
	specs        []Spec
	groups       []string // of each tool; "" if it has none
	dialect      string
	byName       map[string]int // folded name or alias → index
	isOff        func(name string) bool
	unadvertised func(name string) bool

	ownCount   int // number of original tools
	generation int // of the tools added by Beside
}

// NewSet returns a set of tools, or an error for bad or repeated names. The tools of a group are also in the
// set by their own names. A name takes precedence over an alias, an earlier alias over a later one.
func NewSet(tools ...Tool) (Set, error) {
	s := Set{byName: make(map[string]int, 3*len(tools))}
	for _, t := range tools {
		if err := s.add(t, ""); err != nil {
			return Set{}, err
		}
		if g, ok := t.(Group); ok {
			for _, m := range g.Members {
				if err := s.add(m.Tool, g.Name); err != nil {
					return Set{}, err
				}
			}
		}
	}
	for i, spec := range s.specs {
		for _, a := range spec.Aliases {
			if _, taken := s.byName[fold(a.Name)]; !taken {
				s.byName[fold(a.Name)] = i
			}
		}
	}
	s.ownCount = len(s.tools)
	return s, nil
}

func (s *Set) add(t Tool, group string) error {
	spec := t.Spec()
	if spec.Name == "" {
		return errors.New("tool without a name")
	}
	if _, dup := s.byName[fold(spec.Name)]; dup {
		return message.Errorf("duplicate tool %q", spec.Name)
	}
	s.byName[fold(spec.Name)] = len(s.tools)
	s.tools, s.specs, s.groups = append(s.tools, t), append(s.specs, spec), append(s.groups, group)
	return nil
}

// WithTools returns s with more tools after the original ones, in place of any added
// before. It keeps the dialect and what is switched off. A tool with a name
// already in use is left out. generation identifies a set of added tools.
func (s Set) WithTools(generation int, more ...Tool) Set {
	s.tools, s.specs, s.generation = slices.Clip(s.tools[:s.ownCount]), slices.Clip(s.specs[:s.ownCount]), generation
	s.groups = slices.Clip(s.groups[:s.ownCount])
	byName := make(map[string]int, len(s.byName)+len(more))
	for name, i := range s.byName {
		if i < s.ownCount {
			byName[name] = i
		}
	}
	s.byName = byName
	for _, t := range more {
		spec := t.Spec()
		if _, taken := byName[fold(spec.Name)]; taken {
			continue
		}
		byName[fold(spec.Name)] = len(s.tools)
		s.tools, s.specs, s.groups = append(s.tools, t), append(s.specs, spec), append(s.groups, "")
	}
	return s
}

// Generation returns the generation of the tools added by [Set.WithTools].
func (s Set) Generation() int { return s.generation }

// InDialect returns s with its tools advertised under their names in dialect; "" means their own names. Other
// dialects have no groups: their tools are advertised one by one.
func (s Set) InDialect(dialect string) Set {
	s.dialect = dialect
	return s
}

// Without returns s with tools switched off, by their own name or their group's: they are not
// advertised. Lookup still finds them, so that a model that calls one gets the reason why it may not.
func (s Set) Without(off func(name string) bool) Set {
	s.isOff = off
	return s
}

// Unadvertised returns s without advertising the tools for which name is true. They run if they are called.
func (s Set) Unadvertised(name func(string) bool) Set {
	s.unadvertised = name
	return s
}

// IsOff reports whether the tool of this name is switched off, or
// would be if it existed. A group is off if all its tools are.
func (s Set) IsOff(name string) bool {
	i, ok := s.byName[fold(name)]
	if !ok || s.isOff == nil {
		return s.isOff != nil && s.isOff(name)
	}
	if g, ok := s.tools[i].(Group); ok && !s.isOff(g.Name) {
		return !slices.ContainsFunc(g.Members, func(m Member) bool { return !s.isOff(m.Tool.Spec().Name) })
	}
	return s.isOff(s.specs[i].Name) || s.groups[i] != "" && s.isOff(s.groups[i])
}

// Group returns the group of the tool with this name, or "".
func (s Set) Group(name string) string {
	i, ok := s.byName[fold(name)]
	if !ok {
		return ""
	}
	return s.groups[i]
}

// Lookup returns the tool with a name or an alias, in any case.
func (s Set) Lookup(name string) (Tool, bool) {
	i, ok := s.byName[fold(name)]
	if !ok {
		return nil, false
	}
	return s.tools[i], true
}

// Len returns the number of tools.
func (s Set) Len() int { return len(s.tools) }

// Specs yields the descriptions of the advertised tools, in order and with their names in the set's dialect.
func (s Set) Specs() iter.Seq[Spec] {
	return func(yield func(Spec) bool) {
		for i, sp := range s.specs {
			g, isGroup := s.tools[i].(Group)
			if sp.Unlisted || s.IsOff(sp.Name) || s.unadvertised != nil && s.unadvertised(sp.Name) || s.usesDialect() &&
				isGroup || !s.usesDialect() && s.groups[i] != "" {
				continue
			}
			if isGroup && s.isOff != nil && slices.ContainsFunc(g.Members,
				func(m Member) bool { return s.isOff(m.Tool.Spec().Name) }) {
				sp = g.specWithout(s.isOff)
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

// usesDialect reports whether tools are advertised like another agent's.
func (s Set) usesDialect() bool { return s.dialect == Sema || s.dialect == CoAuthor }
