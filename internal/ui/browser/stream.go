package browser

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/uip"
)

const (
	activeInterval    = 100 * time.Millisecond // poll interval of an active session
	idleInterval      = time.Second            // poll interval of a quiet session
	keepAliveInterval = 20 * time.Second       // keepalive interval
	maxStreams        = 256                    // concurrent streams
	maxRecent         = 256                    // records buffered for pages slightly behind
	maxDraft          = 64 << 10               // bytes of an unfinished reply
)

// feed is a session with open pages. The pages share it, so that its log is read once.
type feed struct {
	server  *Server
	ref     SessionRef
	cancel  context.CancelFunc
	changed chan struct{} // signals missed records

	mu       sync.Mutex // guards the fields below
	ready    bool       // the log was read once
	view     view
	activity Activity
	recent   []event.Record // the newest records, without a gap
	draft    draft
	deleted  bool
	readErr  error // why the log cannot be read further
	pages    map[chan struct{}]bool
}

// draft is content not on record yet: a piece of a reply, or the output of a running command.
type draft struct {
	text     string
	restarts int // number of restarts
}

// applyEvent applies an event and reports whether it changed the draft.
func (d *draft) applyEvent(e event.Event) bool {
	more := ""
	switch e := e.(type) {
	case event.TextDelta:
		more = e.Text
	case event.ToolOutput:
		more = e.Text
	case event.Notice:
		more = "\n" + e.Text + "\n"
	case event.Retrying, event.ToolFinished, event.MessageAdded:
		*d = draft{restarts: d.restarts + 1}
		return true
	}
	if len(d.text)+len(more) <= maxDraft {
		d.text += more
	}
	return more != ""
}

// subscribe subscribes a page to a session until leave is called. wake is signaled on every change.
func (s *Server) subscribe(place SessionRef) (f *feed, wake chan struct{}, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f = s.feeds[place]
	if f == nil {
		ctx, end := context.WithCancel(context.Background())
		f = &feed{server: s, ref: place, cancel: end, changed: make(chan struct{}, 1), pages: make(map[chan struct{}]bool),
			draft: s.drafts[place]}
		s.feeds[place] = f
		go f.poll(ctx) // ends when the last page leaves
	}
	wake = make(chan struct{}, 1)
	f.mu.Lock()
	f.pages[wake] = true
	f.mu.Unlock()
	signal(wake)
	return f, wake, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.pages, wake)
		if len(f.pages) == 0 {
			f.cancel()
			delete(s.feeds, place)
		}
	}
}

// cachedView returns the session as its open pages have it, if any, so that it need not be read again.
func (s *Server) cachedView(place SessionRef) (v view, newest []event.Record, ok bool) {
	s.mu.Lock()
	f := s.feeds[place]
	s.mu.Unlock()
	if f == nil {
		return v, nil, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ready || f.readErr != nil || len(f.recent) < maxRecords && uint64(len(f.recent)) < f.view.lastSeq {
		return v, nil, false
	}
	return f.view.clone(), slices.Clone(f.recent[max(0, len(f.recent)-maxRecords):]), true
}

// refresh reads the session's log now, if pages are open on it.
func (s *Server) refresh(place SessionRef) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.feeds[place]; f != nil {
		signal(f.changed)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// wakePages wakes the pages. f.mu must be held.
func (f *feed) wakePages() {
	for wake := range f.pages {
		signal(wake)
	}
}

// poll polls the log for new records: often while the session is active, else rarely.
func (f *feed) poll(ctx context.Context) {
	wait := time.NewTimer(0)
	defer wait.Stop()
	pause, stamp := activeInterval, ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.changed:
			stamp = ""
		case <-wait.C:
		}
		pulse := f.server.Activity(f.ref)
		pause = min(2*pause, idleInterval)
		if pulse.Stamp != stamp {
			pause, stamp = activeInterval, pulse.Stamp
			f.readNew(ctx)
		}
		f.mu.Lock()
		gone := pulse.Deleted || pulse.Stamp == "" && f.view.lastSeq > 0
		if !f.ready || !f.activity.looksLike(pulse) || f.deleted != gone {
			f.ready, f.deleted = true, gone
			f.wakePages()
		}
		f.activity = pulse
		f.mu.Unlock()
		wait.Reset(pause)
	}
}

// readNew reads the new records.
func (f *feed) readNew(ctx context.Context) {
	f.mu.Lock()
	after := f.view.lastSeq
	f.mu.Unlock()
	for r, err := range f.server.Records(ctx, f.ref, after) {
		f.mu.Lock()
		if err != nil {
			f.readErr = err
		} else {
			f.addRecord(r)
		}
		f.mu.Unlock()
	}
}

// addRecord applies a record. f.mu must be held.
func (f *feed) addRecord(r event.Record) {
	if r.Seq != f.view.lastSeq+1 {
		return
	}
	f.view.addRecord(r)
	if len(f.recent) == 2*maxRecent {
		f.recent = slices.Delete(f.recent, 0, maxRecent)
	}
	f.recent = append(f.recent, r)
	if f.ready { // otherwise the record is older than the draft
		f.draft.applyEvent(r.Event)
	}
	f.wakePages()
}

// applyEvent applies an event from this process.
func (f *feed) applyEvent(r event.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Seq > 0 {
		if f.ready && r.Seq == f.view.lastSeq+1 {
			f.addRecord(r)
		} else {
			signal(f.changed)
		}
		return
	}
	if _, ok := r.Event.(event.StateChanged); ok {
		signal(f.changed) // the holder or its state changed
	}
	if f.draft.applyEvent(r.Event) {
		f.wakePages()
	}
}

// reader is a page's position in a feed.
type reader struct {
	after        uint64
	draft        int // bytes
	restarts     int
	activity     Activity
	questionsKey string
	updated      bool
	deletedSent  bool
	readErrSent  bool
}

// update is what changed since a page's last update.
type update struct {
	records          []event.Record
	behind           bool // the page missed more than is buffered; read it from the log
	draft            string
	draftRestarted   bool // the draft was restarted
	view             view
	activity         Activity
	stateChanged     bool // the state changed
	questionsChanged bool // the open questions changed
	deleted          bool
	readErr          error
}

// changesSince returns the changes since rd and advances rd.
func (f *feed) changesSince(rd *reader) (u update, ready bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ready {
		return u, false
	}
	if rd.after < f.view.lastSeq {
		i := len(f.recent) - int(f.view.lastSeq-rd.after)
		if u.behind = i < 0; !u.behind {
			u.records = slices.Clone(f.recent[i:])
			rd.after = f.view.lastSeq
		}
	}
	if u.draftRestarted = rd.restarts != f.draft.restarts; u.draftRestarted {
		rd.draft, rd.restarts = 0, f.draft.restarts
	}
	u.draft, rd.draft = f.draft.text[rd.draft:], len(f.draft.text)
	open := questionsKey(f.view.questions)
	u.stateChanged = !rd.updated || len(u.records) > 0 || u.behind || !rd.activity.looksLike(f.activity)
	u.questionsChanged = !rd.updated || open != rd.questionsKey
	u.view, u.activity = f.view.clone(), f.activity
	if f.deleted && !rd.deletedSent {
		u.deleted, rd.deletedSent = true, true
	}
	if f.readErr != nil && !rd.readErrSent {
		u.readErr, rd.readErrSent = f.readErr, true
	}
	rd.updated, rd.questionsKey, rd.activity = true, open, f.activity
	return u, true
}

// looksLike reports whether a page that shows p needs no change for q.
func (p Activity) looksLike(q Activity) bool {
	p.Stamp, q.Stamp = "", ""
	return p == q
}

// questionsKey returns a key for a set of open questions.
func questionsKey(open []uip.Request) (all string) {
	for _, q := range open {
		all += q.ID + " "
	}
	return all
}

// stream sends a page the events after the last record that it has. Records carry their number as id, so
// that a page that slept or was disconnected gets all that it missed; transient events carry none.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	p := s.newPage(w, r)
	if !s.acquireSlot(r.Context()) {
		return
	}
	err := p.findSession()
	s.releaseSlot()
	if err != nil {
		p.renderRefusal(http.StatusNotFound, "session not found; it may have been removed")
		return
	}
	from := r.Header.Get("Last-Event-ID")
	if from == "" {
		from = r.URL.Query().Get("after")
	}
	after, err := parseNumber(from)
	if err != nil {
		p.renderRefusal(http.StatusBadRequest, err.Error())
		return
	}
	if !s.addStreams(1) {
		p.renderRefusal(http.StatusServiceUnavailable, "too many pages are open; close some")
		return
	}
	defer s.addStreams(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	out := &stream{page: p, w: w, flush: http.NewResponseController(w).Flush}
	f, wake, leave := s.subscribe(p.ref)
	defer leave()
	rd := &reader{after: after}
	quiet := time.NewTicker(keepAliveInterval)
	defer quiet.Stop()
	out.write("retry: 1000\n\n")
	for out.err == nil {
		select {
		case <-r.Context().Done():
			return
		case <-quiet.C:
			out.write(": \n\n")
		case <-wake:
			out.sendUpdate(f, rd)
		}
	}
}

// addStreams changes the number of open streams by n, if the limit allows.
func (s *Server) addStreams(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > 0 && s.openStreams >= maxStreams {
		return false
	}
	s.openStreams += n
	return true
}

// stream writes events to one page.
type stream struct {
	*page
	w     http.ResponseWriter
	flush func() error
	err   error // the first failed write
}

func (o *stream) write(text string) {
	if o.err == nil {
		_, o.err = fmt.Fprint(o.w, text)
	}
	if o.err == nil {
		o.err = o.flush()
	}
}

// writeEvent writes one event, with a data line for each line of data.
func (o *stream) writeEvent(name, id, data string) {
	lines := []string{"event: " + name}
	if id != "" {
		lines = append(lines, "id: "+id)
	}
	for line := range strings.SplitSeq(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(data), "\n") {
		lines = append(lines, "data: "+line)
	}
	o.write(strings.Join(lines, "\n") + "\n\n")
}

// sendUpdate writes the changes.
func (o *stream) sendUpdate(f *feed, rd *reader) {
	u, ready := f.changesSince(rd)
	if !ready {
		return
	}
	if u.behind {
		o.sendFromLog(rd, u.view.lastSeq)
	}
	o.rememberQuestions(u.view.questions...) // their answers may follow
	for _, r := range u.records {
		o.sendRecord(r)
	}
	if u.draftRestarted {
		o.writeEvent("anew", "", "")
	}
	if u.draft != "" {
		o.writeEvent("draft", "", u.draft)
	}
	if u.stateChanged {
		o.writeEvent("state", "", string(o.renderState(u.view, u.activity)))
		o.writeEvent("say", "", string(o.renderPromptForm(u.view, u.activity)))
	}
	if u.questionsChanged {
		o.writeEvent("questions", "", string(o.renderQuestions(u.view.questions)))
	}
	if u.deleted {
		o.writeEvent("gone", "", o.t("The session was removed."))
	}
	if u.readErr != nil {
		o.writeEvent("lost", "", o.t("The rest of the log cannot be read: %s", o.translator.TranslateError(u.readErr)))
	}
}

// sendFromLog sends the records up to last that are no longer buffered.
func (o *stream) sendFromLog(rd *reader, last uint64) {
	if !o.acquireSlot(o.r.Context()) {
		return
	}
	defer o.releaseSlot()
	for r, err := range o.Records(o.r.Context(), o.ref, rd.after) {
		if err != nil || o.err != nil || r.Seq > last {
			return
		}
		o.sendRecord(r)
		rd.after = r.Seq
	}
}

func (o *stream) sendRecord(r event.Record) {
	e := o.renderEntry(r, false)
	if e.body == "" {
		o.writeEvent("passed", formatUint(r.Seq), "")
		return
	}
	o.writeEvent("record", formatUint(r.Seq), string(entryItem(r.Seq, e)))
}
