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
	lookOften  = 100 * time.Millisecond // how soon a session that moves is looked at again
	lookRarely = time.Second            // and one that does not
	alive      = 20 * time.Second       // how often a quiet connection is written to
	mostOpen   = 256                    // streams at a time
	keepRecent = 256                    // records that are held for pages that are a little behind
	maxDraft   = 64 << 10               // of a reply that is under way
)

// feed is a session that pages are open on. They share it: a log is read once for
// all of them.
type feed struct {
	s     *Server
	place Place
	end   context.CancelFunc
	news  chan struct{} // holds that records were missed

	mu     sync.Mutex // guards the fields below
	ready  bool       // the log was read once
	view   view
	pulse  Pulse
	recent []event.Record // the newest, without a gap
	draft  draft
	gone   bool
	lost   error // why the log cannot be read further
	pages  map[chan struct{}]bool
}

// draft is what is seen and not on record yet: a piece of a reply, the output of a
// command that runs.
type draft struct {
	text  string
	voids int // how often it was begun anew
}

// see takes in what happens, and reports whether that changed it.
func (d *draft) see(e event.Event) bool {
	more := ""
	switch e := e.(type) {
	case event.TextDelta:
		more = e.Text
	case event.ToolOutput:
		more = e.Text
	case event.Notice:
		more = "\n" + e.Text + "\n"
	case event.Retrying, event.ToolFinished, event.MessageAdded:
		*d = draft{voids: d.voids + 1}
		return true
	}
	if len(d.text)+len(more) <= maxDraft {
		d.text += more
	}
	return more != ""
}

// follow lets a page follow a session until leave is called. Wake holds something
// whenever there is something new.
func (s *Server) follow(place Place) (f *feed, wake chan struct{}, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f = s.feeds[place]
	if f == nil {
		ctx, end := context.WithCancel(context.Background())
		f = &feed{s: s, place: place, end: end, news: make(chan struct{}, 1), pages: make(map[chan struct{}]bool), draft: s.drafts[place]}
		s.feeds[place] = f
		go f.look(ctx) // until the last page has left
	}
	wake = make(chan struct{}, 1)
	f.mu.Lock()
	f.pages[wake] = true
	f.mu.Unlock()
	poke(wake)
	return f, wake, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.pages, wake)
		if len(f.pages) == 0 {
			f.end()
			delete(s.feeds, place)
		}
	}
}

// followed is a session as the pages that are open on it have it, if there are
// any: it need not be read again.
func (s *Server) followed(place Place) (v view, newest []event.Record, ok bool) {
	s.mu.Lock()
	f := s.feeds[place]
	s.mu.Unlock()
	if f == nil {
		return v, nil, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ready || f.lost != nil || len(f.recent) < mostShown && uint64(len(f.recent)) < f.view.last {
		return v, nil, false
	}
	return f.view.clone(), slices.Clone(f.recent[max(0, len(f.recent)-mostShown):]), true
}

// lookAgain has the log of a session looked at now, if pages are open on it.
func (s *Server) lookAgain(place Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.feeds[place]; f != nil {
		poke(f.news)
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// tell wakes the pages. f.mu is held.
func (f *feed) tell() {
	for wake := range f.pages {
		poke(wake)
	}
}

// look reads what is new in the log, again and again: often while there is
// something, rarely while there is nothing.
func (f *feed) look(ctx context.Context) {
	wait := time.NewTimer(0)
	defer wait.Stop()
	pause, stamp := lookOften, ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.news:
			stamp = ""
		case <-wait.C:
		}
		pulse := f.s.Pulse(f.place)
		pause = min(2*pause, lookRarely)
		if pulse.Stamp != stamp {
			pause, stamp = lookOften, pulse.Stamp
			f.catchUp(ctx)
		}
		f.mu.Lock()
		gone := pulse.Gone || pulse.Stamp == "" && f.view.last > 0
		if !f.ready || !f.pulse.like(pulse) || f.gone != gone {
			f.ready, f.gone = true, gone
			f.tell()
		}
		f.pulse = pulse
		f.mu.Unlock()
		wait.Reset(pause)
	}
}

// catchUp reads the records that are not known yet.
func (f *feed) catchUp(ctx context.Context) {
	f.mu.Lock()
	after := f.view.last
	f.mu.Unlock()
	for r, err := range f.s.Records(ctx, f.place, after) {
		f.mu.Lock()
		if err != nil {
			f.lost = err
		} else {
			f.add(r)
		}
		f.mu.Unlock()
	}
}

// add takes in a record. f.mu is held.
func (f *feed) add(r event.Record) {
	if r.Seq != f.view.last+1 {
		return
	}
	f.view.add(r)
	if len(f.recent) == 2*keepRecent {
		f.recent = slices.Delete(f.recent, 0, keepRecent)
	}
	f.recent = append(f.recent, r)
	if f.ready { // else it is older than the draft
		f.draft.see(r.Event)
	}
	f.tell()
}

// see takes in what this process does in the session.
func (f *feed) see(r event.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Seq > 0 {
		if f.ready && r.Seq == f.view.last+1 {
			f.add(r)
		} else {
			poke(f.news)
		}
		return
	}
	if _, ok := r.Event.(event.StateChanged); ok {
		poke(f.news) // who works, and whether
	}
	if f.draft.see(r.Event) {
		f.tell()
	}
}

// reader is how far a page is with a feed.
type reader struct {
	after uint64
	draft int // bytes
	voids int
	pulse Pulse
	open  string
	told  bool
	gone  bool
	lost  bool
}

// update is what is new for a page.
type update struct {
	records []event.Record
	behind  bool // more than are held; they are read from the log
	draft   string
	anew    bool // the draft is
	view    view
	pulse   Pulse
	state   bool // it changed
	asks    bool // the open questions did
	gone    bool
	lost    error
}

// since is what is new for rd, who then knows it.
func (f *feed) since(rd *reader) (u update, ready bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ready {
		return u, false
	}
	if rd.after < f.view.last {
		i := len(f.recent) - int(f.view.last-rd.after)
		if u.behind = i < 0; !u.behind {
			u.records = slices.Clone(f.recent[i:])
			rd.after = f.view.last
		}
	}
	if u.anew = rd.voids != f.draft.voids; u.anew {
		rd.draft, rd.voids = 0, f.draft.voids
	}
	u.draft, rd.draft = f.draft.text[rd.draft:], len(f.draft.text)
	open := opened(f.view.open)
	u.state = !rd.told || len(u.records) > 0 || u.behind || !rd.pulse.like(f.pulse)
	u.asks = !rd.told || open != rd.open
	u.view, u.pulse = f.view.clone(), f.pulse
	if f.gone && !rd.gone {
		u.gone, rd.gone = true, true
	}
	if f.lost != nil && !rd.lost {
		u.lost, rd.lost = f.lost, true
	}
	rd.told, rd.open, rd.pulse = true, open, f.pulse
	return u, true
}

// like reports whether a page that shows p has nothing to change for q.
func (p Pulse) like(q Pulse) bool {
	p.Stamp, q.Stamp = "", ""
	return p == q
}

// opened tells a set of open questions apart.
func opened(open []uip.Request) (all string) {
	for _, q := range open {
		all += q.ID + " "
	}
	return all
}

// stream tells a page what happens, from the record that it has seen last. What
// is on record carries its number, so that a page that was asleep or cut off gets
// all that it missed; what is only seen carries none.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	p := s.page(w, r)
	if !s.enter(r.Context()) {
		return
	}
	err := p.find()
	s.leave()
	if err != nil {
		p.refuse(http.StatusNotFound, "session not found; it may have been removed")
		return
	}
	from := r.Header.Get("Last-Event-ID")
	if from == "" {
		from = r.URL.Query().Get("after")
	}
	after, err := readNumber(from)
	if err != nil {
		p.refuse(http.StatusBadRequest, err.Error())
		return
	}
	if !s.count(1) {
		p.refuse(http.StatusServiceUnavailable, "too many pages are open; close some")
		return
	}
	defer s.count(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	out := &stream{page: p, w: w, flush: http.NewResponseController(w).Flush}
	f, wake, leave := s.follow(p.place)
	defer leave()
	rd := &reader{after: after}
	quiet := time.NewTicker(alive)
	defer quiet.Stop()
	out.write("retry: 1000\n\n")
	for out.err == nil {
		select {
		case <-r.Context().Done():
			return
		case <-quiet.C:
			out.write(": \n\n")
		case <-wake:
			out.send(f, rd)
		}
	}
}

// count counts an open stream, if there is room for it.
func (s *Server) count(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > 0 && s.open >= mostOpen {
		return false
	}
	s.open += n
	return true
}

// stream writes events to one page.
type stream struct {
	*page
	w     http.ResponseWriter
	flush func() error
	err   error // of the first that did not arrive
}

func (o *stream) write(text string) {
	if o.err == nil {
		_, o.err = fmt.Fprint(o.w, text)
	}
	if o.err == nil {
		o.err = o.flush()
	}
}

// event writes one event. Each line of data is one of its own.
func (o *stream) event(name, id, data string) {
	lines := []string{"event: " + name}
	if id != "" {
		lines = append(lines, "id: "+id)
	}
	for line := range strings.SplitSeq(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(data), "\n") {
		lines = append(lines, "data: "+line)
	}
	o.write(strings.Join(lines, "\n") + "\n\n")
}

// send tells the page what is new.
func (o *stream) send(f *feed, rd *reader) {
	u, ready := f.since(rd)
	if !ready {
		return
	}
	if u.behind {
		o.fromLog(rd, u.view.last)
	}
	o.knows(u.view.open...) // what they answer may come later
	for _, r := range u.records {
		o.record(r)
	}
	if u.anew {
		o.event("anew", "", "")
	}
	if u.draft != "" {
		o.event("draft", "", u.draft)
	}
	if u.state {
		o.event("state", "", string(o.state(u.view, u.pulse)))
		o.event("say", "", string(o.prompt(u.view, u.pulse)))
	}
	if u.asks {
		o.event("questions", "", string(o.questions(u.view.open)))
	}
	if u.gone {
		o.event("gone", "", o.t("The session was removed."))
	}
	if u.lost != nil {
		o.event("lost", "", o.t("The rest of the log cannot be read: %s", o.words.Said(u.lost.Error())))
	}
}

// fromLog tells the records that are not held any more, up to one.
func (o *stream) fromLog(rd *reader, last uint64) {
	if !o.enter(o.r.Context()) {
		return
	}
	defer o.leave()
	for r, err := range o.Records(o.r.Context(), o.place, rd.after) {
		if err != nil || o.err != nil || r.Seq > last {
			return
		}
		o.record(r)
		rd.after = r.Seq
	}
}

func (o *stream) record(r event.Record) {
	e := o.entry(r, false)
	if e.body == "" {
		o.event("passed", decimal(r.Seq), "")
		return
	}
	o.event("record", decimal(r.Seq), string(item(r.Seq, e)))
}
