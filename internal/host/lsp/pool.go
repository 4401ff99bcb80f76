package lsp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"coder/internal/core/clip"
	"coder/internal/core/message"
	"coder/internal/host/child"
	"coder/internal/host/program"
)

// Options configure the servers of a pool.
type Options struct {
	Root string   // the workspace; no server works above it
	Env  []string // the servers' whole environment, with the PATH to search
	// Servers are the user's own; they take precedence over known ones. They must never come from a
	// project's settings.
	Servers []Kind
	// Cache is a folder for data that servers can rebuild, created when needed. It is their only writable
	// folder. If empty, they write where they usually do.
	Cache string
	// CheckAllowed, if not nil, returns an error if servers must not be started or queried.
	CheckAllowed func() error
	// Confine, if not nil, confines the command of every server before it starts, or returns an error.
	Confine func(*program.Cmd) error
	// Hides, if not nil, reports whether answers leave out a file that was not asked about: what shows a place
	// reads its line.
	Hides func(name string) bool
	// Program and Version identify coder to the servers.
	Program, Version string
}

const (
	maxServers  = 6                // running at a time
	idleTimeout = 15 * time.Minute // idle time before a server is stopped
	stableTime  = 2 * time.Minute  // after this time a server's death no longer counts
	crashPause  = 10 * time.Minute // pause for a server that keeps dying
)

// restartDelays are the pauses before restarts, by the number of deaths. After more deaths, the server rests
// for crashPause.
var restartDelays = []time.Duration{0, 0, time.Second, 4 * time.Second}

// Pool manages the language servers of a workspace. It is safe for concurrent use.
type Pool struct {
	options Options
	launch  func(command []string, dir string, env []string) (transport, error)

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	owners sync.WaitGroup // goroutines that own servers

	mu        sync.Mutex // guards the fields below
	histories map[serverID]*history
	uses      int
}

type serverID struct{ kind, root string }

// history records the servers of a post.
type history struct {
	current   *service // nil if no server runs
	deaths    int
	lastErr   error            // why the last server died
	pauseOver <-chan time.Time // set after too many deaths
}

// service is the lifetime of one server, from before its start.
type service struct {
	ready   chan struct{} // closed when server or err is set
	server  *server
	err     error
	used    chan struct{} // buffered
	ended   chan struct{} // closed when the server is completely gone
	cancel  context.CancelFunc
	lastUse int // last use, as a counter; guarded by the pool's mu
}

// New returns a pool without starting a server.
func New(o Options) *Pool {
	if abs, err := filepath.Abs(o.Root); err == nil {
		o.Root = abs
	}
	if real, err := filepath.EvalSymlinks(o.Root); err == nil {
		o.Root = real
	}
	if o.CheckAllowed == nil {
		o.CheckAllowed = func() error { return nil }
	}
	life, end := context.WithCancel(context.Background())
	launch := func(command []string, dir string, env []string) (transport, error) {
		p, err := child.Start(command, dir, env, o.Confine)
		if err != nil {
			return nil, err
		}
		return p, nil
	}
	return &Pool{options: o, launch: launch, ctx: life, cancel: end, histories: make(map[serverID]*history)}
}

// Close stops all servers and waits until they are gone.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.cancel()
	p.mu.Unlock()
	p.owners.Wait()
	return nil
}

// Diagnose returns the diagnostics of a file with the given text, which must match the disk. name is
// relative to the workspace. If the server is too slow for its limit or for ctx, the report is pending.
func (p *Pool) Diagnose(ctx context.Context, name string, text []byte) (r Report, err error) {
	err = p.withServer(ctx, name, func(s *server, path string) error {
		r, err = s.diagnose(ctx, path, text)
		return err
	})
	return r, err
}

// Definition returns the definitions of the symbol at a position.
func (p *Pool) Definition(ctx context.Context, name string, text []byte, at Position) ([]Location, error) {
	return p.locate(ctx, "textDocument/definition", name, text, at)
}

// References returns the uses of the symbol at a position, including its definition.
func (p *Pool) References(ctx context.Context, name string, text []byte, at Position) ([]Location, error) {
	return p.locate(ctx, "textDocument/references", name, text, at)
}

// Hover describes the symbol at a position in Markdown, or returns "".
func (p *Pool) Hover(ctx context.Context, name string, text []byte, at Position) (words string, err error) {
	err = p.withDocument(ctx, name, text, func(s *server, path string) error {
		ask := documentID(path)
		ask["position"] = at
		var reply struct {
			Contents json.RawMessage `json:"contents"`
		}
		err := s.request(ctx, requestTimeout, "textDocument/hover", ask, &reply) // null if there is none
		words = strings.TrimSpace(markupText(reply.Contents))
		return err
	})
	return words, err
}

// Survey returns diagnostics of whole projects: from the running servers, and those for the project in
// the workspace root. Some servers only report on files they were asked about.
func (p *Pool) Survey(ctx context.Context) (sum Report, err error) {
	if err := p.options.CheckAllowed(); err != nil {
		return Report{}, err
	}
	var names []string
	for _, s := range p.surveyServers(ctx) {
		r, e := s.survey(ctx)
		if e != nil {
			err = errors.Join(err, p.explainError(s, e))
			continue
		}
		names = append(names, r.Server)
		for _, d := range r.Diagnostics {
			if !p.hides(d.Path) {
				sum.Diagnostics = append(sum.Diagnostics, d)
			}
		}
		sum.Pending, sum.Note = sum.Pending || r.Pending, r.Note
	}
	if ctx.Err() != nil {
		return Report{}, ctx.Err()
	}
	if len(names) == 0 && err == nil {
		err = errors.New("no language server is running, and none was found for the workspace root; ask about a file")
	}
	if len(names) > 0 {
		err = nil // one answer is enough
	}
	slices.Sort(names)
	sum.Server = strings.Join(slices.Compact(names), ", ")
	return sum, err
}

// surveyServers returns the servers to query in a survey.
func (p *Pool) surveyServers(ctx context.Context) (list []*server) {
	for _, k := range slices.Concat(p.options.Servers, builtinKinds) {
		if len(k.Files) == 0 || !containsAny(p.options.Root, slices.Concat(k.Markers...)) {
			continue
		}
		if kind, command, err := p.options.kindFor(k.exampleName()); err == nil && kind.Name == k.Name {
			_, _ = p.ensureServer(ctx, kind, command, p.options.Root) // a server that does not start is ignored
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.histories {
		if s := h.readyServer(); s != nil {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *server) int {
		return cmp.Or(strings.Compare(a.kind.Name, b.kind.Name), strings.Compare(a.root, b.root))
	})
	return list
}

// IsRunning reports whether the server for a file is running.
func (p *Pool) IsRunning(name string) bool {
	path := p.options.abs(name)
	kind, _, err := p.options.kindFor(path)
	if err != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.histories[serverID{kind.Name, kind.projectOf(p.options.Root, path)}]
	return h != nil && h.readyServer() != nil
}

// readyServer returns the server of the post if it is ready, else nil.
func (h *history) readyServer() *server {
	if h.current == nil {
		return nil
	}
	select {
	case <-h.current.ready:
		if s := h.current.server; s != nil && s.isAlive() {
			return s
		}
	default:
	}
	return nil
}

// withDocument calls do with the server for a file, after sending the file's text.
func (p *Pool) withDocument(ctx context.Context, name string, text []byte, do func(*server, string) error) error {
	return p.withServer(ctx, name, func(s *server, path string) error {
		if _, _, err := s.syncDocument(ctx, path, text); err != nil {
			return err
		}
		return do(s, path)
	})
}

// withServer calls do with the server for a file. If the server dies meanwhile, it calls do once more with a
// new one.
func (p *Pool) withServer(ctx context.Context, name string, do func(s *server, path string) error) error {
	if err := p.options.CheckAllowed(); err != nil {
		return err
	}
	path := p.options.abs(name)
	kind, command, err := p.options.kindFor(path)
	if err != nil {
		if missing := (*NoServerError)(nil); errors.As(err, &missing) {
			missing.Path = name
		}
		return err
	}
	root := kind.projectOf(p.options.Root, path)
	for again := true; ; again = false {
		s, err := p.ensureServer(ctx, kind, command, root)
		if err != nil {
			return err
		}
		err = do(s, path)
		if err == nil || s.isAlive() || errors.Is(err, errTimeout) || ctx.Err() != nil || !again {
			return p.explainError(s, err)
		}
	}
}

// explainError adds a server's last words to the error that ended it.
func (p *Pool) explainError(s *server, err error) error {
	if !errors.Is(err, errServerExited) {
		return err
	}
	if said := s.conn.transport.ExitReport(); said != "" {
		return message.Errorf("%s: %w (%s)", s.kind.Name, err, clip.Truncate(said, maxExitReport))
	}
	return message.Errorf("%s: %w", s.kind.Name, err)
}

// maxExitReport limits the bytes of a server's last words in an error.
const maxExitReport = 1000

func (p *Pool) hides(name string) bool { return p.options.Hides != nil && p.options.Hides(name) }

// locate returns the locations of the symbol at a position. The server answers with one location,
// several, or several links.
func (p *Pool) locate(ctx context.Context, method, name string, text []byte, at Position) (list []Location, err error) {
	err = p.withDocument(ctx, name, text, func(s *server, path string) error {
		ask := documentID(path)
		ask["position"] = at
		if method == "textDocument/references" {
			ask["context"] = map[string]any{"includeDeclaration": true}
		}
		var raw json.RawMessage
		if err := s.request(ctx, requestTimeout, method, ask, &raw); err != nil {
			return err
		}
		if list, err = s.parseLocations(raw); err != nil {
			err = message.Errorf("%s: read the answer to %s: %w", s.kind.Name, method, err)
		}
		return err
	})
	return slices.DeleteFunc(list, func(l Location) bool { return l.Path != name && p.hides(l.Path) }), err
}

// wireLocation is a location in the protocol's form, or a link to one.
type wireLocation struct {
	URI         string `json:"uri"`
	Range       Range  `json:"range"`
	TargetURI   string `json:"targetUri"`
	TargetRange Range  `json:"targetSelectionRange"`
}

// maxLocations limits the locations used from an answer.
const maxLocations = 5000

func (s *server) parseLocations(raw json.RawMessage) (list []Location, err error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] == '{' {
		raw = append(append([]byte{'['}, raw...), ']')
	}
	var sent []wireLocation
	if err := json.Unmarshal(raw, &sent); err != nil {
		return nil, err
	}
	for _, w := range sent[:min(len(sent), maxLocations)] {
		if w.TargetURI != "" {
			w.URI, w.Range = w.TargetURI, w.TargetRange
		}
		if path := uriToPath(w.URI); path != "" {
			list = append(list, Location{displayName(s.top, path), w.Range})
		}
	}
	return list, nil
}

// markupText returns text in any of the protocol's forms: a string, an object with a value, or a list of
// these.
func markupText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var o struct {
		Language string `json:"language"`
		Value    string `json:"value"`
	}
	if json.Unmarshal(raw, &o) == nil {
		if o.Language != "" {
			return "```" + o.Language + "\n" + o.Value + "\n```"
		}
		return o.Value
	}
	var list []json.RawMessage
	_ = json.Unmarshal(raw, &list) // any other form is empty
	var parts []string
	for _, raw := range list {
		if len(raw) > 0 && raw[0] != '[' {
			parts = append(parts, markupText(raw))
		}
	}
	return strings.Join(parts, "\n\n")
}
