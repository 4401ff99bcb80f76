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
	"coder/internal/core/message"
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

// webServer is the program behind the pages in a browser.
type webServer struct {
	invocation *invocation
	app        *app.Workspace // for the folder of the call
	server     *browser.Server
	ctx        context.Context // ends with the program
	work       sync.WaitGroup

	openMu sync.Mutex // held while a session is opened

	mu     sync.Mutex // guards the fields below
	apps   map[string]*app.Workspace
	hosted map[browser.SessionRef]*hostedSession
}

// runWeb serves sessions to a browser until told to stop.
func (inv *invocation) runWeb(ctx context.Context, a *app.Workspace) error {
	fl := inv.flags
	fl.HasUser, fl.NoYolo = true, !fl.allowBypass
	if fl.Ephemeral || a.Home == "" {
		return usageErrorf("coder web needs saved sessions; it cannot be used with --no-session-persistence")
	}
	at, cert, err := listenWeb(ctx, fl.listen, inv.Now())
	if err != nil {
		return err
	}
	w := &webServer{invocation: inv, app: a, ctx: ctx, apps: map[string]*app.Workspace{a.Root: a},
		hosted: make(map[browser.SessionRef]*hostedSession)}
	o := browser.Options{
		Backend: w.browserProgram(), Secure: cert != nil, Lang: i18n.Choose(cmp.Or(fl.Lang, inv.settings.Config.UI.Lang),
			inv.Getenv),
		Key:   browser.Key{Token: randomSecret(), Cookie: randomSecret(), Form: randomSecret(), Path: randomSecret()[:16]},
		Names: hostNames(fl.listen), Translator: func(lang string) browser.Translator { return i18n.For(lang) },
	}
	w.server = browser.New(o)
	if err := w.printAddress(at.Addr(), o.Key, cert); err != nil {
		return errors.Join(err, at.Close())
	}
	return w.serve(ctx, at, cert)
}

// randomSecret returns a random secret.
func randomSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// printAddress shows the user the address.
func (w *webServer) printAddress(at net.Addr, key browser.Key, cert *tls.Certificate) error {
	words, scheme := w.invocation.printer, "http"
	if cert != nil {
		scheme = "https"
	}
	var lines []string
	forPhone := "" // the first address that another device may reach
	for _, host := range listenerAddresses(at, w.invocation.flags.listen) {
		line := fmt.Sprintf("%s://%s/%s/?token=%s", scheme, host, key.Path, key.Token)
		if lines = append(lines, line); forPhone == "" && !isLoopback(host) {
			forPhone = line
		}
	}
	if cert != nil {
		lines = append(lines,
			words.T("the browser will warn about the certificate, which is for this run only; its SHA-256 fingerprint is"),
			"  "+certFingerprint(cert))
	}
	lines = append(lines, words.T("anyone with this link can act as you; Ctrl-C stops the server"))
	if forPhone != "" && w.invocation.isTerminal && words.DisplaySigns("✓") == "✓" {
		lines = append(lines, qrCode(forPhone, w.invocation.columns)...)
	}
	return w.invocation.printWrapped(lines...)
}

// serve answers browsers until ctx ends.
func (w *webServer) serve(ctx context.Context, at net.Listener, cert *tls.Certificate) error {
	requests, over := context.WithCancel(context.WithoutCancel(ctx))
	defer over()
	srv := &http.Server{
		Handler: w.server, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
		BaseContext:    func(net.Listener) context.Context { return requests },
		ErrorLog:       log.New(errorFilter{w.invocation.Stderr}, "", 0),
	}
	if cert != nil {
		at = tls.NewListener(at, &tls.Config{Certificates: []tls.Certificate{*cert}, MinVersion: tls.VersionTLS12,
			NextProtos: []string{"h2", "http/1.1"}})
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

// browserProgram returns what the pages show and do.
func (w *webServer) browserProgram() browser.Backend {
	return browser.Backend{
		Now: w.invocation.Now, Projects: w.listProjects, Heads: w.listSessions, Search: w.searchSessions,
		CheckSession: w.checkSession, Records: w.readRecords, Activity: w.sessionPulse, StateAt: w.stateAt,
		Diff: w.diffRecords,
		Verify: func(p browser.SessionRef) (report audit.Report, err error) {
			a, err := w.projectApp(p.Root)
			if err == nil {
				report, err = a.Store().Verify(p.Session)
			}
			return report, err
		},
		Ledger: func(ctx context.Context, p browser.SessionRef) (display.Blocks, error) {
			a, err := w.projectApp(p.Root)
			if err != nil {
				return nil, err
			}
			book, err := a.BuildLedger(ctx, p.Session, 0)
			if err != nil {
				return nil, err
			}
			return slash.Sources(book, p.Session), nil
		},
		WithCost: func(root, model string, u chat.Usage) chat.Usage {
			if a, err := w.projectApp(root); err == nil {
				u = a.WithCost(model, u)
			}
			return u
		},
		Fleet: w.fleetProgram(), Modes: w.modeNames(), StartSession: w.startSession, SendMessage: w.sendMessage,
		Answer: w.deliverAnswer, Stop: w.stopTurn, Release: w.releaseSession,
		RestorePlan: w.planRestore, Fork: w.forkSession,
	}
}

// modeNames returns the modes available from a page.
func (w *webServer) modeNames() []string {
	return slices.DeleteFunc(mode.Names(), func(name string) bool {
		return name == mode.Yolo &&
			w.invocation.flags.NoYolo
	})
}

// maxProjects is the most projects listed.
const maxProjects = 200

func (w *webServer) listProjects() []string {
	all := w.app.Workspaces()
	return slices.DeleteFunc(all[:min(len(all), maxProjects)], func(root string) bool {
		info, err := os.Stat(root)
		return err != nil || !info.IsDir()
	})
}

// projectApp returns the program for a project, to read its records.
func (w *webServer) projectApp(root string) (*app.Workspace, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.apps[root]; a != nil {
		return a, nil
	}
	a, err := w.invocation.newAppIn(root, "", func(string) {})
	if err == nil {
		w.apps[root] = a
	}
	return a, err
}

// newAppIn builds the program for another folder, in mode unless that is empty.
func (inv *invocation) newAppIn(root, mode string, warn func(string)) (*app.Workspace, error) {
	o := inv.flags.Options
	o.Dir, o.Mode = root, cmp.Or(mode, o.Mode)
	settings, err := app.Load(inv.Env.Env, o)
	if err != nil {
		return nil, err
	}
	return app.New(inv.Env.Env, o, settings, warn)
}

func (w *webServer) listSessions(ctx context.Context, root string) ([]session.Head, error) {
	a, err := w.projectApp(root)
	if err != nil {
		return nil, errors.New(errorMessage(err).String())
	}
	all, err := a.Store().ListHeads(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := range w.hosted { // includes one that was just started
		if p.Root == root && !slices.ContainsFunc(all, func(h session.Head) bool { return h.ID == p.Session }) {
			all = append([]session.Head{{ID: p.Session, Updated: w.invocation.Now()}}, all...)
		}
	}
	return all, err
}

func (w *webServer) searchSessions(ctx context.Context, words []string) (all []browser.SearchResult, err error) {
	found, err := w.app.SearchSessions(ctx, words)
	for _, f := range found {
		all = append(all, browser.SearchResult{SessionRef: browser.SessionRef{Root: f.Project, Session: f.Session},
			Title: cmp.Or(f.Title, f.Session), Updated: f.Updated, Record: f.Record, Kind: string(f.Kind), Line: f.Line})
	}
	return all, err
}

func (w *webServer) checkSession(ctx context.Context, p browser.SessionRef) error {
	if w.findHosted(p) != nil {
		return nil // it may have no records yet
	}
	a, err := w.projectApp(p.Root)
	if err == nil {
		_, err = a.Store().CheckSession(ctx, p.Session)
	}
	return err
}

func (w *webServer) readRecords(ctx context.Context, p browser.SessionRef, after uint64,
	logs ...event.Log) iter.Seq2[event.Record, error] {
	a, err := w.projectApp(p.Root)
	if err != nil {
		return func(yield func(event.Record, error) bool) { yield(event.Record{}, err) }
	}
	if after > 0 || len(logs) > 0 {
		return a.Store().Logs.Read(ctx, p.Session, after, logs...)
	}
	return completeRecords(a.Store(), p.Session, a.Store().Logs.Read(ctx, p.Session, 0))
}

// completeRecords yields all records of a session, and finally an error if its logs contain more than can be
// read.
func completeRecords(store *app.Store, session string,
	records iter.Seq2[event.Record, error]) iter.Seq2[event.Record, error] {
	return func(yield func(event.Record, error) bool) {
		lines := uint64(0) // lines that existed before
		for _, l := range event.AllLogs {
			lines += countLines(repofile.NewRoot(store.Path("log", session)), filepath.Base(store.LogPath(session, l)))
		}
		last := uint64(0)
		for r, err := range records {
			if !yield(r, err) || err != nil {
				return
			}
			last = r.Seq
		}
		if last < lines {
			yield(event.Record{}, message.Errorf("damaged after record %d", last))
		}
	}
}

// countLines counts a file's complete lines.
func countLines(dir repofile.Root, name string) (n uint64) {
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

// sessionPulse returns a session's state without opening it.
func (w *webServer) sessionPulse(p browser.SessionRef) (pulse browser.Activity) {
	a, err := w.projectApp(p.Root)
	if err != nil {
		return browser.Activity{Deleted: true}
	}
	store := a.Store()
	for _, l := range event.AllLogs {
		if info, err := os.Lstat(store.LogPath(p.Session, l)); err == nil {
			pulse.Stamp += fmt.Sprintf("%d ", info.Size())
		}
	}
	if pulse.Stamp == "" {
		_, err := os.Lstat(store.Path("sessions", p.Session+".json"))
		pulse.Deleted = err != nil && w.findHosted(p) == nil
	}
	if h := w.findHosted(p); h != nil {
		pulse.HeldHere, pulse.Holder = true, "coder web"
		pulse.Busy, pulse.Queued = h.State()
	} else if pid := lockHolder(store.Path("log", p.Session, "lock")); pid > 0 && pid != os.Getpid() {
		pulse.Holder = fmt.Sprintf("process %d", pid)
		pulse.AcceptsMessages, pulse.CanStop = serve.AcceptsMessages(a, p.Session, serve.MessageSlot),
			serve.AcceptsMessages(a, p.Session, serve.StopSlot)
	}
	return pulse
}

// stateAt returns a session's state at a record.
func (w *webServer) stateAt(ctx context.Context, p browser.SessionRef, at uint64) (s browser.SessionState, err error) {
	a, err := w.projectApp(p.Root)
	if err != nil {
		return s, err
	}
	err = a.ReadStates(ctx, p.Session, []uint64{at}, func(states []app.PastState, _ provenance.ContentReader) error {
		state := states[0]
		s = browser.SessionState{Seq: state.Seq, Time: state.Time, Blocks: w.invocation.stateBlocks(state, 0)}
		slash.EachPart(state.Conversation, func(name string,
			n int) {
			s.Parts = append(s.Parts, browser.Part{Name: name, Tokens: n})
		})
		return nil
	})
	return s, err
}

// planRestore shows what restoring files to a record would change.
func (w *webServer) planRestore(ctx context.Context, p browser.SessionRef, at uint64) (display.Blocks, error) {
	a, err := w.projectApp(p.Root)
	if err != nil {
		return nil, toPageError(err)
	}
	plan, err := a.PlanRestore(ctx, p.Session, at, false)
	if err != nil {
		return nil, toPageError(err)
	}
	return display.Blocks{slash.RestorePlan(plan, at, fmt.Sprintf("/restore %d force", at))}, nil
}

// forkSession starts a new session from a record.
func (w *webServer) forkSession(ctx context.Context, p browser.SessionRef, at uint64) (to browser.SessionRef,
	err error) {
	a, err := w.projectApp(p.Root)
	if err != nil {
		return to, toPageError(err)
	}
	f, err := a.ForkSession(context.WithoutCancel(ctx), p.Session, at, "")
	return browser.SessionRef{Root: f.Workspace, Session: f.Session}, toPageError(err)
}

// diffRecords returns the changes to a session's files between two records.
func (w *webServer) diffRecords(ctx context.Context, p browser.SessionRef, from, to uint64) (all []browser.FileDiff,
	err error) {
	a, err := w.projectApp(p.Root)
	if err != nil {
		return nil, err
	}
	err = a.ReadStates(ctx, p.Session, []uint64{from, to},
		func(states []app.PastState, kept provenance.ContentReader) error {
			for _, d := range asof.Compare(ctx, states[0].State, states[1].State, kept) {
				f := browser.FileDiff{Path: d.Path, NotSaved: d.Err != nil}
				f.Unified, f.Added, f.Deleted = patch.Unified(d.Path, d.Old, d.New)
				all = append(all, f)
			}
			return nil
		})
	var mistake *app.Error
	if errors.As(err, &mistake) {
		err = &browser.UserError{Status: http.StatusNotFound, Text: mistake.Error()}
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
