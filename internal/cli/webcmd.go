package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"coder/internal/app"
	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/host/patch"
	"coder/internal/host/repofile"
	"coder/internal/policy/mode"
	"coder/internal/record/audit"
	"coder/internal/record/session"
	"coder/internal/report/asof"
	"coder/internal/report/provenance"
	"coder/internal/serve"
	"coder/internal/slash"
	"coder/internal/ui/browser"
	"coder/internal/ui/i18n"
)

// web is the program behind the pages in a browser.
type web struct {
	inv   *invocation
	own   *app.Workspace // for the folder of the call
	pages *browser.Server
	life  context.Context // ends with the program
	work  sync.WaitGroup

	opening sync.Mutex // held while a session is opened

	mu     sync.Mutex // guards the fields below
	rooms  map[string]*app.Workspace
	hosted map[browser.Place]*hosted
}

// runWeb serves sessions to a browser until told to stop.
func (inv *invocation) runWeb(ctx context.Context, a *app.Workspace) error {
	fl := inv.flags
	fl.Attended, fl.NoYolo = true, !fl.mayBypass
	if fl.Ephemeral || a.Home == "" {
		return usagef("coder web needs saved sessions; it cannot be used with --no-session-persistence")
	}
	at, cert, err := listenWeb(ctx, fl.listen, inv.Now())
	if err != nil {
		return err
	}
	w := &web{inv: inv, own: a, life: ctx, rooms: map[string]*app.Workspace{a.Root: a}, hosted: make(map[browser.Place]*hosted)}
	o := browser.Options{
		Program: w.program(), Secure: cert != nil, Lang: i18n.Choose(cmp.Or(fl.Lang, inv.settings.Config.UI.Lang), inv.Getenv),
		Key:   browser.Key{Token: chance(), Cookie: chance(), Form: chance(), Place: chance()[:16]},
		Names: hostNames(fl.listen), Speak: func(lang string) browser.Words { return i18n.For(lang) },
	}
	w.pages = browser.New(o)
	if err := w.invite(at.Addr(), o.Key, cert); err != nil {
		return errors.Join(err, at.Close())
	}
	return w.serve(ctx, at, cert)
}

// chance returns a random secret.
func chance() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// invite shows the user the address.
func (w *web) invite(at net.Addr, key browser.Key, cert *tls.Certificate) error {
	words, scheme := w.inv.words, "http"
	if cert != nil {
		scheme = "https"
	}
	var lines []string
	for _, host := range reachedBy(at, w.inv.flags.listen) {
		lines = append(lines, fmt.Sprintf("%s://%s/%s/?token=%s", scheme, host, key.Place, key.Token))
	}
	if cert != nil {
		lines = append(lines, words.T("the browser will warn about the certificate, which is for this run only; its SHA-256 fingerprint is"), "  "+fingerprint(cert))
	}
	lines = append(lines, words.T("anyone with this link can act as you; Ctrl-C stops the server"))
	return w.inv.tell(lines...)
}

// serve answers browsers until ctx ends.
func (w *web) serve(ctx context.Context, at net.Listener, cert *tls.Certificate) error {
	requests, over := context.WithCancel(context.WithoutCancel(ctx))
	defer over()
	srv := &http.Server{
		Handler: w.pages, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return requests }, ErrorLog: log.New(mishaps{w.inv.Stderr}, "", 0),
	}
	if cert != nil {
		at = tls.NewListener(at, &tls.Config{Certificates: []tls.Certificate{*cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}})
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(at) }()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		over()
		err = errors.Join(srv.Close(), ctx.Err())
		<-served
	}
	w.work.Wait()
	return err
}

// program returns what the pages show and do.
func (w *web) program() browser.Program {
	return browser.Program{
		Now: w.inv.Now, Projects: w.projects, Heads: w.heads, Search: w.search,
		Known: w.known, Records: w.records, Pulse: w.pulse, Stand: w.stand, Diff: w.diff,
		Verify: func(p browser.Place) (report audit.Report, err error) {
			a, err := w.room(p.Root)
			if err == nil {
				report, err = a.Store().Verify(p.Session)
			}
			return report, err
		},
		Ledger: func(ctx context.Context, p browser.Place) (display.Blocks, error) {
			a, err := w.room(p.Root)
			if err != nil {
				return nil, err
			}
			book, err := a.Ledger(ctx, p.Session, 0)
			if err != nil {
				return nil, err
			}
			return slash.Sources(book, p.Session), nil
		},
		Priced: func(root, model string, u chat.Usage) chat.Usage {
			if a, err := w.room(root); err == nil {
				u = a.Priced(model, u)
			}
			return u
		},
		Fleet: w.fleet(), Modes: w.modes(), Begin: w.begin, Say: w.say, Answer: w.answer, Stop: w.stop, Release: w.release,
		RestorePlan: w.planRestore, Fork: w.fork,
	}
}

// modes returns the modes available from a page.
func (w *web) modes() []string {
	return slices.DeleteFunc(mode.Names(), func(name string) bool { return name == mode.Yolo && w.inv.flags.NoYolo })
}

// mostProjects is the most projects listed.
const mostProjects = 200

func (w *web) projects() []string {
	all := w.own.Workspaces()
	return slices.DeleteFunc(all[:min(len(all), mostProjects)], func(root string) bool {
		info, err := os.Stat(root)
		return err != nil || !info.IsDir()
	})
}

// room returns the program for a project, to read its records.
func (w *web) room(root string) (*app.Workspace, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.rooms[root]; a != nil {
		return a, nil
	}
	a, err := w.inv.appIn(root, "", func(string) {})
	if err == nil {
		w.rooms[root] = a
	}
	return a, err
}

// appIn builds the program for another folder, in mode unless that is empty.
func (inv *invocation) appIn(root, mode string, warn func(string)) (*app.Workspace, error) {
	o := inv.flags.Options
	o.Dir, o.Mode = root, cmp.Or(mode, o.Mode)
	settings, err := app.Load(inv.Env.Env, o)
	if err != nil {
		return nil, err
	}
	return app.New(inv.Env.Env, o, settings, warn)
}

func (w *web) heads(ctx context.Context, root string) ([]session.Head, error) {
	a, err := w.room(root)
	if err != nil {
		return nil, errors.New(message(err))
	}
	all, err := a.Store().Heads(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := range w.hosted { // includes one that was just started
		if p.Root == root && !slices.ContainsFunc(all, func(h session.Head) bool { return h.ID == p.Session }) {
			all = append([]session.Head{{ID: p.Session, Updated: w.inv.Now()}}, all...)
		}
	}
	return all, err
}

func (w *web) search(ctx context.Context, words []string) (all []browser.Found, err error) {
	found, err := w.own.Search(ctx, words)
	for _, f := range found {
		all = append(all, browser.Found{Place: browser.Place{Root: f.Project, Session: f.Session}, Title: cmp.Or(f.Title, f.Session), Updated: f.Updated, Record: f.Record, Kind: string(f.Kind), Line: f.Line})
	}
	return all, err
}

func (w *web) known(ctx context.Context, p browser.Place) error {
	if w.find(p) != nil {
		return nil // it may have no records yet
	}
	a, err := w.room(p.Root)
	if err == nil {
		_, err = a.Store().Known(ctx, p.Session)
	}
	return err
}

func (w *web) records(ctx context.Context, p browser.Place, after uint64, logs ...event.Log) iter.Seq2[event.Record, error] {
	a, err := w.room(p.Root)
	if err != nil {
		return func(yield func(event.Record, error) bool) { yield(event.Record{}, err) }
	}
	if after > 0 || len(logs) > 0 {
		return a.Store().Logs.Read(ctx, p.Session, after, logs...)
	}
	return wholly(a.Store(), p.Session, a.Store().Logs.Read(ctx, p.Session, 0))
}

// wholly yields all records of a session, and finally an error if its logs contain more than can be
// read.
func wholly(store *app.Store, session string, records iter.Seq2[event.Record, error]) iter.Seq2[event.Record, error] {
	return func(yield func(event.Record, error) bool) {
		lines := uint64(0) // lines that existed before
		for _, l := range event.Logs {
			lines += linesOf(repofile.Below(store.Dir("log", session)), filepath.Base(store.LogPath(session, l)))
		}
		last := uint64(0)
		for r, err := range records {
			if !yield(r, err) || err != nil {
				return
			}
			last = r.Seq
		}
		if last < lines {
			yield(event.Record{}, fmt.Errorf("it is damaged after record %d", last))
		}
	}
}

// linesOf counts a file's complete lines.
func linesOf(dir repofile.Root, name string) (n uint64) {
	f, err := dir.Open(name)
	if err != nil {
		return 0
	}
	defer f.Close()
	buf := make([]byte, 64<<10)
	for {
		m, err := f.Read(buf)
		n += uint64(bytes.Count(buf[:m], []byte("\n")))
		if err != nil {
			return n
		}
	}
}

// pulse returns a session's state without opening it.
func (w *web) pulse(p browser.Place) (pulse browser.Pulse) {
	a, err := w.room(p.Root)
	if err != nil {
		return browser.Pulse{Gone: true}
	}
	store := a.Store()
	for _, l := range event.Logs {
		if info, err := os.Lstat(store.LogPath(p.Session, l)); err == nil {
			pulse.Stamp += fmt.Sprintf("%d ", info.Size())
		}
	}
	if pulse.Stamp == "" {
		_, err := os.Lstat(store.Dir("sessions", p.Session+".json"))
		pulse.Gone = err != nil && w.find(p) == nil
	}
	if h := w.find(p); h != nil {
		pulse.Ours, pulse.Holder = true, "coder web"
		pulse.Busy, pulse.Queued = h.State()
	} else if pid := holderOf(store.Dir("log", p.Session, "lock")); pid > 0 && pid != os.Getpid() {
		pulse.Holder = fmt.Sprintf("process %d", pid)
		pulse.Hears, pulse.Stops = serve.Listens(a, p.Session, serve.ToSay), serve.Listens(a, p.Session, serve.ToStop)
	}
	return pulse
}

// stand returns a session's state at a record.
func (w *web) stand(ctx context.Context, p browser.Place, at uint64) (s browser.Standing, err error) {
	a, err := w.room(p.Root)
	if err != nil {
		return s, err
	}
	err = a.AsOf(ctx, p.Session, []uint64{at}, func(states []app.AsOf, _ provenance.Contents) error {
		state := states[0]
		s = browser.Standing{Seq: state.Seq, Time: state.Time, Blocks: w.inv.standing(state, 0)}
		slash.EachPart(state.Conversation, func(name string, n int) { s.Parts = append(s.Parts, browser.Part{Name: name, Tokens: n}) })
		return nil
	})
	return s, err
}

// planRestore shows what restoring files to a record would change.
func (w *web) planRestore(ctx context.Context, p browser.Place, at uint64) (display.Blocks, error) {
	a, err := w.room(p.Root)
	if err != nil {
		return nil, asProblem(err)
	}
	plan, err := a.PlanRestore(ctx, p.Session, at, false)
	if err != nil {
		return nil, asProblem(err)
	}
	return display.Blocks{slash.RestorePlan(plan, at, fmt.Sprintf("/restore %d force", at))}, nil
}

// fork starts a new session from a record.
func (w *web) fork(ctx context.Context, p browser.Place, at uint64) (to browser.Place, err error) {
	a, err := w.room(p.Root)
	if err != nil {
		return to, asProblem(err)
	}
	f, err := a.ForkAt(context.WithoutCancel(ctx), p.Session, at, "")
	return browser.Place{Root: f.Work, Session: f.Session}, asProblem(err)
}

// diff returns the changes to a session's files between two records.
func (w *web) diff(ctx context.Context, p browser.Place, from, to uint64) (all []browser.FileDiff, err error) {
	a, err := w.room(p.Root)
	if err != nil {
		return nil, err
	}
	err = a.AsOf(ctx, p.Session, []uint64{from, to}, func(states []app.AsOf, kept provenance.Contents) error {
		for _, d := range asof.Compare(ctx, states[0].State, states[1].State, kept) {
			f := browser.FileDiff{Path: d.Path, Lost: d.Lost != nil}
			f.Unified, f.Added, f.Deleted = patch.Unified(d.Path, d.Old, d.New)
			all = append(all, f)
		}
		return nil
	})
	var mistake *app.Error
	if errors.As(err, &mistake) {
		err = &browser.Problem{Status: http.StatusNotFound, Text: mistake.Error()}
	}
	return all, err
}

// hostNames returns the names that the user gave this host.
func hostNames(listen string) (names []string) {
	if host, _, err := net.SplitHostPort(listen); err == nil && host != "" && net.ParseIP(host) == nil {
		names = append(names, strings.ToLower(host))
	}
	return names
}
