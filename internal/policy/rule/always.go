package rule

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"coder/internal/policy"
	"coder/internal/policy/risk"
	"coder/internal/tool"
)

// Kept is what was remembered, as it is written down.
type Kept struct {
	Commands []string `json:"commands,omitempty"` // by name
	Lines    []string `json:"lines,omitempty"`    // whole command lines
	Reads    []string `json:"reads,omitempty"`    // files
	Writes   []string `json:"writes,omitempty"`   // files
	Hosts    []string `json:"hosts,omitempty"`
	Tools    []string `json:"tools,omitempty"`
}

// Always is what a person said "always" to in one project. A nil Always knows
// nothing.
type Always struct {
	mu   sync.Mutex // guards kept
	kept Kept
}

// Remember starts from what is written down.
func Remember(k Kept) *Always { return &Always{kept: k} }

// Kept is everything remembered so far.
func (a *Always) Kept() Kept {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.kept
}

func (a *Always) has(list func(*Kept) []string, s string) bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Contains(list(&a.kept), s)
}

func (a *Always) tool(name string) bool {
	return a.has(func(k *Kept) []string { return k.Tools }, name)
}

func (a *Always) line(text string) bool {
	return a.has(func(k *Kept) []string { return k.Lines }, strings.TrimSpace(text))
}

func (a *Always) file(class, place string) bool {
	if class == "write" {
		return a.has(func(k *Kept) []string { return k.Writes }, place)
	}
	return a.has(func(k *Kept) []string { return k.Reads }, place)
}

func (a *Always) host(address string) bool {
	return a.has(func(k *Kept) []string { return k.Hosts }, hostOf(address))
}

func (a *Always) commands() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.kept.Commands
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// Offer says what "always" would remember for a call, in words for the person
// who is asked. The error says why it cannot be remembered.
func (b *Book) Offer(c policy.Case) (string, error) {
	_, what, err := b.memory(c)
	return what, err
}

// Add remembers a call that a person said "always" to.
func (b *Book) Add(c policy.Case) error {
	more, _, err := b.memory(c)
	if err != nil {
		return err
	}
	a := b.Always
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range []struct {
		to   *[]string
		from []string
	}{
		{&a.kept.Commands, more.Commands}, {&a.kept.Lines, more.Lines}, {&a.kept.Reads, more.Reads},
		{&a.kept.Writes, more.Writes}, {&a.kept.Hosts, more.Hosts}, {&a.kept.Tools, more.Tools},
	} {
		for _, s := range l.from {
			if !slices.Contains(*l.to, s) {
				*l.to = append(slices.Clip(*l.to), s)
			}
		}
	}
	return nil
}

// memory is what remembering a call would add.
func (b *Book) memory(c policy.Case) (k Kept, what string, err error) {
	if b.Always == nil {
		return k, "", errors.New("nothing is remembered here")
	}
	if len(c.Plan.Effects) == 0 || c.Plan.Unconfined {
		return k, "", errors.New("it is asked about every time")
	}
	var parts []string
	for _, e := range c.Plan.Effects {
		part, err := b.remember(&k, c, e)
		if err != nil {
			return k, "", err
		}
		if part != "" && !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return k, strings.Join(parts, ", "), nil
}

func (b *Book) remember(k *Kept, c policy.Case, e tool.Effect) (string, error) {
	switch e.Kind {
	case tool.Exec:
		r := b.read(c.Plan, e.Target)
		names, err := risk.Names(r)
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(b.named(Preset{}, r), func(f finding) bool { return f.verdict != policy.Allow }) {
			return "", errors.New("it names a file that is asked about")
		}
		if b.Exact {
			k.Lines = append(k.Lines, strings.TrimSpace(e.Target))
			return fmt.Sprintf("this exact command line: %s", strings.TrimSpace(e.Target)), nil
		}
		k.Commands = append(k.Commands, names...)
		return "commands named " + strings.Join(names, ", "), nil
	case tool.Write:
		if what := risk.Protected(e.Target); what != "" {
			return "", errors.New("it is asked about every time")
		}
		k.Writes = append(k.Writes, b.place(e.Target))
		return "changes to " + b.place(e.Target), nil
	case tool.Read:
		k.Reads = append(k.Reads, b.place(e.Target))
		return "reading " + b.place(e.Target), nil
	case tool.Net:
		host := hostOf(e.Target)
		k.Hosts = append(k.Hosts, host)
		return "fetching from " + host, nil
	case tool.Note, tool.Unknown:
	}
	k.Tools = append(k.Tools, c.Tool)
	return "every use of " + c.Tool, nil
}

// Words lists what is remembered, as a person would say it.
func (k Kept) Words() []string {
	var all []string
	add := func(format string, list []string) {
		for _, s := range list {
			all = append(all, fmt.Sprintf(format, s))
		}
	}
	add("commands named %s", k.Commands)
	add("the command line %s", k.Lines)
	add("reading %s", k.Reads)
	add("changes to %s", k.Writes)
	add("fetching from %s", k.Hosts)
	add("every use of %s", k.Tools)
	return all
}
