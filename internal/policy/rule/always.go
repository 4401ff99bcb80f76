package rule

import (
	"cmp"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"coder/internal/core/secret"
	"coder/internal/policy"
	"coder/internal/policy/risk"
	"coder/internal/tool"
)

// Grant is one "always" of the user.
type Grant struct {
	Kind Kind   `json:"kind"`
	What string `json:"what"`
	// Description is how a tool of another program described itself then;
	// the grant applies as long as the description is the same.
	Description string `json:"as,omitempty"`
	// Time and Why are the time and the reason of the grant.
	Time time.Time `json:"when"`
	Why  string    `json:"why"`
}

// Kind is the kind of a grant.
type Kind string

// The kinds of grants.
const (
	KindCommand Kind = "command" // commands of a shape
	KindLine    Kind = "line"    // one exact command line
	KindRead    Kind = "read"    // one file
	KindEdit    Kind = "write"   // one file
	KindFolder  Kind = "below"   // the files below a folder
	KindFetch   Kind = "host"    // fetches from a host
	KindConnect Kind = "connect" // commands that connect to a host
	KindTool    Kind = "tool"    // every use of a tool
)

// String describes the grant in the user's words.
func (g Grant) String() string {
	switch g.Kind {
	case KindCommand:
		if shape, in, ok := strings.Cut(strings.TrimSuffix(g.What, ")"), " (in "); ok && strings.HasSuffix(g.What, ")") {
			return "commands like " + shape + " (in " + in + ")"
		}
		return "commands like " + g.What
	case KindLine:
		return "this exact command line: " + g.What
	case KindRead:
		return "reading " + g.What
	case KindEdit:
		return "changes to " + g.What
	case KindFolder:
		if g.What == "." {
			return "edits below this folder"
		}
		return "edits below " + g.What
	case KindFetch:
		return "fetching from " + g.What
	case KindConnect:
		return "commands reaching " + g.What
	case KindTool:
		if g.Description != "" && !g.Time.IsZero() {
			return "every use of " + g.What + " as it was described then"
		}
		if g.Description != "" {
			return "every use of " + g.What + " as it is described now"
		}
		return "every use of " + g.What
	}
	return g.What
}

func (g Grant) equal(h Grant) bool {
	return g.Kind == h.Kind && g.What == h.What && g.Description == h.Description
}

// GrantList has the grants of a project or a session. A nil Always has none.
type GrantList struct {
	// Names, fixed from the start, are what the user's settings
	// allow: names of commands, or whole lines with Book.Exact.
	Names []string

	mu     sync.Mutex // guards grants
	grants []Grant
}

// NewGrantList returns an Always with saved grants.
func NewGrantList(grants ...Grant) *GrantList { return &GrantList{grants: grants} }

// Grants returns all grants, the oldest first.
func (a *GrantList) Grants() []Grant {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.grants)
}

// Replace replaces all grants.
func (a *GrantList) Replace(grants []Grant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.grants = grants
}

// Add adds new grants.
func (a *GrantList) Add(grants ...Grant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, g := range grants {
		if !slices.ContainsFunc(a.grants, g.equal) {
			a.grants = append(a.grants, g)
		}
	}
}

// Revoke removes a grant and reports whether it was there.
func (a *GrantList) Revoke(g Grant) bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	before := len(a.grants)
	a.grants = slices.DeleteFunc(a.grants, g.equal)
	return len(a.grants) < before
}

func (a *GrantList) has(k Kind, what string) bool { return a.contains(Grant{Kind: k, What: what}) }

func (a *GrantList) contains(g Grant) bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.grants, g.equal)
}

// isInGrantedFolder reports whether edits of a file were allowed by a grant for its folder.
func (a *GrantList) isInGrantedFolder(place string) bool {
	if a == nil || path.IsAbs(place) || strings.HasPrefix(place, "../") {
		return false
	}
	for dir := path.Dir(place); ; dir = path.Dir(dir) {
		if a.has(KindFolder, dir) {
			return true
		}
		if dir == "." {
			return false
		}
	}
}

// isGranted reports whether the project or the session has a grant.
func (b *Book) isGranted(k Kind, what string) bool {
	return b.Always.has(k, what) || b.Session.has(k, what)
}

// isUseGranted reports whether every use of a tool was always allowed, with the tool's current description.
func (b *Book) isUseGranted(name, as string) bool {
	g := Grant{Kind: KindTool, What: name, Description: as}
	return b.Always.contains(g) || b.Session.contains(g)
}

// wasUseGranted reports whether every use of a tool was always allowed, with any description.
func (b *Book) wasUseGranted(name string) bool {
	return slices.ContainsFunc(slices.Concat(b.Always.Grants(), b.Session.Grants()),
		func(g Grant) bool { return g.Kind == KindTool && g.What == name && g.Description != "" })
}

// isFileGranted reports whether a use of a file was always allowed. A
// grant for a folder does not cover its secret files.
func (b *Book) isFileGranted(class, place string) bool {
	if class != ClassWrite {
		return b.isGranted(KindRead, place)
	}
	return b.isGranted(KindEdit, place) || !secret.IsSecretFile(place) &&
		(b.Always.isInGrantedFolder(place) || b.Session.isInGrantedFolder(place))
}

// isRemembered reports whether a line was always allowed, or rules of
// this run allow what "always" would have remembered of it.
func (b *Book) isRemembered(tool string, r risk.Report) bool {
	if _, err := risk.Shapes(r); err != nil {
		return false
	}
	text := strings.TrimSpace(r.Command)
	var names []string
	if b.Always != nil {
		names = b.Always.Names
	}
	let := func(k Kind, what string) bool {
		return b.isGranted(k, what) || b.isAllowedByRun(tool, ClassCommand, func(on string) bool { return on == what })
	}
	return let(KindLine, text) || b.Exact && slices.Contains(names, text) || !b.Exact &&
		risk.IsCovered(r, func(shape string) bool { return let(KindCommand, shape) }, names)
}

// errNotRememberable is the reason why some calls are never remembered.
var errNotRememberable = errors.New("needs approval every time")

// Offers returns what "always" may remember of a call, by
// scope. The error says why nothing can be remembered.
func (b *Book) Offers(c policy.Case) ([]policy.Offer, error) {
	var offers []policy.Offer
	var failed error
	for _, s := range []policy.Scope{policy.ThisSession, policy.ThisProject, policy.BelowFolder} {
		switch grants, err := b.grants(c, s); {
		case err != nil:
			failed = cmp.Or(failed, err)
		case len(grants) > 0:
			var all []string
			for _, kind := range []Kind{KindCommand, KindRead, KindEdit, KindFolder, KindFetch, KindLine, KindTool} {
				said := ""
				for _, g := range grants {
					switch {
					case g.Kind != kind:
					// each applies somewhere else
					case said == "" || kind == KindLine || kind == KindTool || isFolderBound(g.What) || isFolderBound(said):
						said = g.String()
						all = append(all, said)
					default: // of the same kind
						all[len(all)-1] += ", " + g.What
					}
				}
			}
			offers = append(offers, policy.Offer{Scope: s, What: strings.Join(all, ", "), Each: all,
				Rules: b.equivalentRules(grants)})
		}
	}
	if len(offers) == 0 {
		return nil, cmp.Or(failed, errNotRememberable)
	}
	return offers, nil
}

// isFolderBound reports whether a grant is for commands in a certain folder.
func isFolderBound(what string) bool {
	return strings.Contains(what, " (in ") && strings.HasSuffix(what, ")")
}

// Add saves the grants for a call that the user always allowed, and returns them.
func (b *Book) Add(c policy.Case, s policy.Scope, now time.Time) ([]Grant, error) {
	grants, err := b.grants(c, s)
	if err != nil {
		return nil, err
	}
	title := c.Plan.Title
	if title == "" && len(c.Plan.Effects) > 0 {
		title = c.Plan.Effects[0].Target
	}
	for i := range grants {
		grants[i].Time, grants[i].Why = now, c.Tool+" "+title
	}
	if s == policy.ThisProject {
		b.Always.Add(grants...)
	} else {
		b.Session.Add(grants...)
	}
	return grants, nil
}

// IsHostAllowed reports whether commands are always allowed to reach a host.
func (b *Book) IsHostAllowed(host string) bool { return b.isGranted(KindConnect, host) }

// AllowHost saves a grant for commands to reach a host.
func (b *Book) AllowHost(host string, s policy.Scope, now time.Time, why string) {
	grant := Grant{Kind: KindConnect, What: host, Time: now, Why: why}
	if s == policy.ThisProject {
		b.Always.Add(grant)
	} else {
		b.Session.Add(grant)
	}
}

// grants returns the grants that remembering a call would add.
func (b *Book) grants(c policy.Case, s policy.Scope) ([]Grant, error) {
	switch {
	case s == policy.ThisProject && b.Always == nil, s != policy.ThisProject && b.Session == nil:
		return nil, errors.New("answers are not remembered here")
	case len(c.Plan.Effects) == 0 || c.Plan.Unconfined || c.Plan.Sends != "" || len(c.Plan.Executable) > 0:
		return nil, errNotRememberable
	case s == policy.BelowFolder:
		// The folder is the one right below the root, or the whole project for a file directly in the root.
		folder := ""
		for _, e := range c.Plan.Effects {
			place := b.place(e.Target)
			if !tool.ChangesFile(c.Tool, e) || path.IsAbs(place) || strings.HasPrefix(place, "../") ||
				risk.ProtectedReason(e.Target) != "" || secret.IsSecretFile(place) {
				return nil, errNotRememberable
			}
			top, _, deep := strings.Cut(place, "/")
			if !deep {
				top = "."
			}
			if folder = cmp.Or(folder, top); folder != top {
				folder = "."
			}
		}
		return []Grant{{Kind: KindFolder, What: folder}}, nil
	}
	var all []Grant
	for _, e := range c.Plan.Effects {
		some, err := b.grantsFor(c, e)
		if err != nil {
			return nil, err
		}
		for _, g := range some {
			if !slices.ContainsFunc(all, g.equal) {
				all = append(all, g)
			}
		}
	}
	return all, nil
}

func (b *Book) grantsFor(c policy.Case, e tool.Effect) ([]Grant, error) {
	switch e.Kind {
	case tool.Exec:
		r := b.analyse(c.Plan, e.Target)
		shapes, err := risk.Shapes(r)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(b.judgeNamed(Preset{}, r), func(f finding) bool { return f.verdict != policy.Allow }) {
			return nil, errors.New("names a file that needs approval")
		}
		var all []Grant
		switch {
		case b.Exact || len(shapes) == 0:
			all = append(all, Grant{Kind: KindLine, What: strings.TrimSpace(r.Command)})
		default:
			for _, s := range shapes {
				all = append(all, Grant{Kind: KindCommand, What: s})
			}
		}
		for _, file := range r.Redirects {
			all = append(all, Grant{Kind: KindEdit, What: b.place(file)})
		}
		return all, nil
	case tool.Write:
		if risk.ProtectedReason(e.Target) != "" {
			return nil, errNotRememberable
		}
		return []Grant{{Kind: KindEdit, What: b.place(e.Target)}}, nil
	case tool.Read:
		return []Grant{{Kind: KindRead, What: b.place(e.Target)}}, nil
	case tool.Net:
		host := HostOf(e.Target)
		if host == "" {
			return nil, errNotRememberable
		}
		return []Grant{{Kind: KindFetch, What: host}}, nil
	case tool.Note, tool.Unknown:
	}
	return []Grant{{Kind: KindTool, What: c.Tool, Description: c.Plan.Version}}, nil
}
