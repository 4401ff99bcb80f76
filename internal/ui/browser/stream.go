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
	lookOften  = 100 * time.Millisecond // poll interval of an active session
	lookRarely = time.Second            // poll interval of a quiet session
	alive      = 20 * time.Second       // keepalive interval
	mostOpen   = 256                    // concurrent streams
	keepRecent = 256                    // records buffered for pages slightly behind
	maxDraft   = 64 << 10               // bytes of an unfinished reply
)

// feed is a session with open pages. The pages share it, so that its log is read once.
type feed struct {
	s     *Server
	place Place
	end   context.CancelFunc
	news  chan struct{} // signals missed records

	mu     sync.Mutex // guards the fields below
	ready  bool       // the log was read once
	view   view
	pulse  Pulse
	recent []event.Record // the newest records, without a gap
	draft  draft
	gone   bool
	lost   error // why the log cannot be read further
	pages  map[chan struct{}]bool
}

// draft is content not on record yet: a piece of a reply, or the output of a running command.
type draft struct {
	text  string
	voids int // number of restarts
}

// see applies an event and reports whether it changed the draft.
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

// follow subscribes a page to a session until leave is called. wake is signaled on every change.
func (s *Server) follow(place Place) (f *feed, wake chan struct{}, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f = s.feeds[place]
	if f == nil {
		ctx, end := context.WithCancel(context.Background())
		f = &feed{s: s, place: place, end: end, news: make(chan struct{}, 1), pages: make(map[chan struct{}]bool), draft: s.drafts[place]}
		s.feeds[place] = f
		go f.look(ctx) // ends when the last page leaves
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

// followed returns the session as its open pages have it, if any, so that it need not be read again.
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

// lookAgain reads the session's log now, if pages are open on it.
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

// tell wakes the pages. f.mu must be held.
func (f *feed) tell() {
	for wake := range f.pages {
		poke(wake)
	}
}

// look polls the log for new records: often while the session is active, else rarely.
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

// catchUp reads the new records.
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

// add applies a record. f.mu must be held.
func (f *feed) add(r event.Record) {
	if r.Seq != f.view.last+1 {
		return
	}
	f.view.add(r)
	if len(f.recent) == 2*keepRecent {
		f.recent = slices.Delete(f.recent, 0, keepRecent)
	}
	f.recent = append(f.recent, r)
	if f.ready { // otherwise the record is older than the draft
		f.draft.see(r.Event)
	}
	f.tell()
}

// see applies an event from this process.
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
		poke(f.news) // the holder or its state changed
	}
	if f.draft.see(r.Event) {
		f.tell()
	}
}

// reader is a page's position in a feed.
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

// update is what changed since a page's last update.
type update struct {
	records []event.Record
	behind  bool // the page missed more than is buffered; read it from the log
	draft   string
	anew    bool // the draft was restarted
	view    view
	pulse   Pulse
	state   bool // the state changed
	asks    bool // the open questions changed
	gone    bool
	lost    error
}

// since returns the changes since rd and advances rd.
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

// like reports whether a page that shows p needs no change for q.
func (p Pulse) like(q Pulse) bool {
	p.Stamp, q.Stamp = "", ""
	return p == q
}

// opened returns a key for a set of open questions.
func opened(open []uip.Request) (all string) {
	for _, q := range open {
		all += q.ID + " "
	}
	return all
}

// stream sends a page the events after the last record that it has. Records carry their number as id, so
// that a page that slept or was disconnected gets all that it missed; transient events carry none.
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

// count changes the number of open streams by n, if the limit allows.
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

// event writes one event, with a data line for each line of data.
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

// send writes the changes.
func (o *stream) send(f *feed, rd *reader) {
	u, ready := f.since(rd)
	if !ready {
		return
	}
	if u.behind {
		o.fromLog(rd, u.view.last)
	}
	o.knows(u.view.open...) // their answers may follow
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

// fromLog sends the records up to last that are no longer buffered.
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
