package lsp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"coder/internal/core/clip"
	"coder/internal/host/child"
	"coder/internal/host/program"
)

// Options say what servers there may be and where they work.
type Options struct {
	Root string   // the workspace; no server works above it
	Env  []string // all of the servers' environment; its PATH is where they are looked for
	// Servers are the user's own, which go before those we know. They are never
	// to be taken from a project's settings.
	Servers []Kind
	// Cache is a folder for what servers can make again, which is made when it is
	// needed and is all they have to write to. If it is empty they write where
	// they are used to.
	Cache string
	// May, if it is not nil, objects to servers being started, or asked.
	May func() error
	// Confine, if it is not nil, is given the command of every server before it
	// is started, to have it run within bounds, and may object.
	Confine func(*program.Cmd) error
	// Program and Version are what we call ourselves.
	Program, Version string
}

const (
	maxServers = 6                // running at a time
	idleLimit  = 15 * time.Minute // without use after which a server is ended
	provenTime = 2 * time.Minute  // after which a server's death is not held against its successor
	restTime   = 10 * time.Minute // before a server that keeps dying is tried again
)

// delays are the pauses before a server is started again, by how often it died.
// One that dies more often is left alone for restTime.
var delays = []time.Duration{0, 0, time.Second, 4 * time.Second}

// Pool is the language servers of a workspace. It is safe for concurrent use.
type Pool struct {
	options Options
	launch  func(command []string, dir string, env []string) (line, error)

	life context.Context // ends with Close
	end  context.CancelFunc
	work sync.WaitGroup // the owners of servers

	mu    sync.Mutex // guards the fields below
	posts map[post]*history
	uses  int
}

type post struct{ kind, root string }

// history is how a post has been filled.
type history struct {
	now    *service // nil if nobody is there
	deaths int
	last   error            // what the last one died of
	rested <-chan time.Time // set when it died too often
}

// service is one server's time at its post, from before its start.
type service struct {
	ready  chan struct{} // closed when server or err is set
	server *server
	err    error
	used   chan struct{} // has room for one
	ended  chan struct{} // closed when nothing is left of it
	cancel context.CancelFunc
	when   int // last used, counted in uses; guarded by the pool's mu
}

// New makes a pool. It starts nothing.
func New(o Options) *Pool {
	if abs, err := filepath.Abs(o.Root); err == nil {
		o.Root = abs
	}
	if real, err := filepath.EvalSymlinks(o.Root); err == nil {
		o.Root = real
	}
	if o.May == nil {
		o.May = func() error { return nil }
	}
	life, end := context.WithCancel(context.Background())
	launch := func(command []string, dir string, env []string) (line, error) {
		p, err := child.Start(command, dir, env, o.Confine)
		if err != nil {
			return nil, err
		}
		return p, nil
	}
	return &Pool{options: o, launch: launch, life: life, end: end, posts: make(map[post]*history)}
}

// Close ends every server and waits until they are gone.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.end()
	p.mu.Unlock()
	p.work.Wait()
	return nil
}

// Diagnose tells what is wrong with a file whose text is given as it is on
// disk. name is relative to the workspace. A server that takes too long, or
// longer than ctx has time for, gives a report that is pending.
func (p *Pool) Diagnose(ctx context.Context, name string, text []byte) (r Report, err error) {
	err = p.with(ctx, name, func(s *server, path string) error {
		r, err = s.diagnose(ctx, path, text)
		return err
	})
	return r, err
}

// Definition finds where the thing at a place is defined.
func (p *Pool) Definition(ctx context.Context, name string, text []byte, at Position) ([]Location, error) {
	return p.locate(ctx, "textDocument/definition", name, text, at)
}

// References finds where the thing at a place is used, its definition included.
func (p *Pool) References(ctx context.Context, name string, text []byte, at Position) ([]Location, error) {
	return p.locate(ctx, "textDocument/references", name, text, at)
}

// Hover tells what the thing at a place is, in Markdown; "" if there is nothing
// to say.
func (p *Pool) Hover(ctx context.Context, name string, text []byte, at Position) (words string, err error) {
	err = p.asking(ctx, name, text, func(s *server, path string) error {
		ask := about(path)
		ask["position"] = at
		var reply struct {
			Contents json.RawMessage `json:"contents"`
		}
		err := s.request(ctx, requestLimit, "textDocument/hover", ask, &reply) // null if there is nothing
		words = strings.TrimSpace(prose(reply.Contents))
		return err
	})
	return words, err
}

// Survey tells what the servers say about whole projects: those at work, and
// those for the project in the root of the workspace. Some servers speak only
// of files they were asked about.
func (p *Pool) Survey(ctx context.Context) (sum Report, err error) {
	if err := p.options.May(); err != nil {
		return Report{}, err
	}
	var names []string
	for _, s := range p.surveyors(ctx) {
		r, e := s.survey(ctx)
		if e != nil {
			err = errors.Join(err, p.explain(s, e))
			continue
		}
		names = append(names, r.Server)
		sum.Diagnostics = append(sum.Diagnostics, r.Diagnostics...)
		sum.Pending, sum.Note = sum.Pending || r.Pending, r.Note
	}
	if ctx.Err() != nil {
		return Report{}, ctx.Err()
	}
	if len(names) == 0 && err == nil {
		err = errors.New("no language server is running, and none was found for the workspace root; ask about a file")
	}
	if len(names) > 0 {
		err = nil // one that answers is enough
	}
	slices.Sort(names)
	sum.Server = strings.Join(slices.Compact(names), ", ")
	return sum, err
}

// surveyors are the servers to ask about everything.
func (p *Pool) surveyors(ctx context.Context) (list []*server) {
	for _, k := range slices.Concat(p.options.Servers, known) {
		if len(k.Files) == 0 || !holds(p.options.Root, slices.Concat(k.Markers...)) {
			continue
		}
		if kind, command, err := p.options.kindFor(k.example()); err == nil && kind.Name == k.Name {
			_, _ = p.server(ctx, kind, command, p.options.Root) // one that does not start has nothing to say
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.posts {
		if s := h.atWork(); s != nil {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *server) int {
		return cmp.Or(strings.Compare(a.kind.Name, b.kind.Name), strings.Compare(a.root, b.root))
	})
	return list
}

// Running reports whether the server for a file is at work already.
func (p *Pool) Running(name string) bool {
	path := p.options.abs(name)
	kind, _, err := p.options.kindFor(path)
	if err != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.posts[post{kind.Name, kind.projectOf(p.options.Root, path)}]
	return h != nil && h.atWork() != nil
}

// atWork is the server at the post, if it is ready to be asked.
func (h *history) atWork() *server {
	if h.now == nil {
		return nil
	}
	select {
	case <-h.now.ready:
		if s := h.now.server; s != nil && s.alive() {
			return s
		}
	default:
	}
	return nil
}

// asking does what do says with the server for a file, which has been told the
// file's text.
func (p *Pool) asking(ctx context.Context, name string, text []byte, do func(*server, string) error) error {
	return p.with(ctx, name, func(s *server, path string) error {
		if _, _, err := s.tell(ctx, path, text); err != nil {
			return err
		}
		return do(s, path)
	})
}

// with does what do says with the server for a file; if the server dies of it,
// or meanwhile, once more with another.
func (p *Pool) with(ctx context.Context, name string, do func(s *server, path string) error) error {
	if err := p.options.May(); err != nil {
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
		s, err := p.server(ctx, kind, command, root)
		if err != nil {
			return err
		}
		err = do(s, path)
		if err == nil || s.alive() || errors.Is(err, errSlow) || ctx.Err() != nil || !again {
			return p.explain(s, err)
		}
	}
}

// explain adds a server's last words to the error of its end.
func (p *Pool) explain(s *server, err error) error {
	if !errors.Is(err, errGone) {
		return err
	}
	if said := s.conn.line.LastWords(); said != "" {
		return fmt.Errorf("%s: %w (%s)", s.kind.Name, err, clip.Text(said, maxSaid))
	}
	return fmt.Errorf("%s: %w", s.kind.Name, err)
}

// maxSaid is how many bytes of a server's last words are passed on.
const maxSaid = 1000

// locate asks where the thing at a place is. The answer is a place, several, or
// several links to places.
func (p *Pool) locate(ctx context.Context, method, name string, text []byte, at Position) (list []Location, err error) {
	err = p.asking(ctx, name, text, func(s *server, path string) error {
		ask := about(path)
		ask["position"] = at
		if method == "textDocument/references" {
			ask["context"] = map[string]any{"includeDeclaration": true}
		}
		var raw json.RawMessage
		if err := s.request(ctx, requestLimit, method, ask, &raw); err != nil {
			return err
		}
		if list, err = s.places(raw); err != nil {
			err = fmt.Errorf("%s: read the answer to %s: %w", s.kind.Name, method, err)
		}
		return err
	})
	return list, err
}

// place of a thing as servers write it: a location, or a link to one.
type wireLocation struct {
	URI         string `json:"uri"`
	Range       Range  `json:"range"`
	TargetURI   string `json:"targetUri"`
	TargetRange Range  `json:"targetSelectionRange"`
}

// maxPlaces is how many places are taken of an answer.
const maxPlaces = 5000

func (s *server) places(raw json.RawMessage) (list []Location, err error) {
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
	for _, w := range sent[:min(len(sent), maxPlaces)] {
		if w.TargetURI != "" {
			w.URI, w.Range = w.TargetURI, w.TargetRange
		}
		if path := pathOf(w.URI); path != "" {
			list = append(list, Location{nameOf(s.top, path), w.Range})
		}
	}
	return list, nil
}

// prose reads text in any of the forms servers write it: a string, an object
// that has it as its value, or a list of these.
func prose(raw json.RawMessage) string {
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
	_ = json.Unmarshal(raw, &list) // what is none of these says nothing
	var parts []string
	for _, raw := range list {
		if len(raw) > 0 && raw[0] != '[' {
			parts = append(parts, prose(raw))
		}
	}
	return strings.Join(parts, "\n\n")
}
