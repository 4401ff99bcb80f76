// Package audit reads a session's logs without trusting anyone: [Verify] checks that no line was
// changed, removed, moved or inserted, and [Calls] lists the calls with their results.
//
// Every line has a checksum of itself and of all earlier lines in its log: see [Link]. Whoever can write
// the logs can also write new checksums, so the extent of the logs is saved elsewhere, signed: see
// [Head]. A log that extends beyond its newest head comes from a process that died, not from a forger.
package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/message"
)

// A BreakError reports the first place where a session's logs differ from what was written.
type BreakError struct {
	File   string // "" if nobody can tell which
	Line   int    // counted from 1; zero if there is no such line
	Record uint64 // the first record in doubt
	Why    string
}

func (e *BreakError) Error() string {
	where := cmp.Or(e.File, "the logs")
	if e.Line > 0 {
		return fmt.Sprintf("%s, line %d: record %d: %s", where, e.Line, e.Record, e.Why)
	}
	return fmt.Sprintf("%s: record %d: %s", where, e.Record, e.Why)
}

// A Head is the extent of a session's logs at some moment: the number of the newest record, and the end
// of each log.
type Head struct {
	Seq  uint64
	Ends [3]End // in the order of [event.AllLogs]
	// Repaired reports that everything beyond it was damaged or lost, and is no longer part of the session.
	Repaired bool
	// Imported reports that the session up to it was not written here: it came from another machine, or is a
	// copy.
	Imported bool
	// Found reports that the session up to it was here before anything in it was signed: it was copied or
	// moved here with its project, or is older than the key.
	Found bool
	Time  time.Time
}

// End is the newest record of a log and the link after it. An empty log has none.
type End struct {
	Seq  uint64
	Link Link
}

// Source is one log to verify.
type Source struct {
	Log  event.Log
	Name string // file name
	Data io.Reader
}

// Report is the result of a successful verification.
type Report struct {
	Lines     int
	Unchecked int      // lines of an earlier format, without a checksum
	Covered   uint64   // the newest record covered by a head
	Lost      []uint64 // the records after which something was lost and mended
	// Imported is the newest record that was not written here, and Since is when such records came. Found
	// means that they were found here, not imported.
	Imported uint64
	Since    time.Time
	Found    bool
	// OpenCalls are the calls without a completion, although no process works in the session and no question is
	// open.
	OpenCalls []Call
}

// Describe describes the report of a session in sentences translated by t.
func (r Report) Describe(id string, t func(format string, args ...any) string) []string {
	lines := []string{t("session %s: all %d lines are intact", id, r.Lines)}
	for _, c := range r.OpenCalls {
		lines = append(lines,
			t("record %d: %s was requested but never ended, and no process is running it; the session ends it when it continues",
				c.Seq, c.Requested.Tool))
	}
	if r.Unchecked > 0 {
		lines = append(lines, t("%d lines were written by an earlier version and have no checksum", r.Unchecked))
	}
	for _, seq := range r.Lost {
		lines = append(lines, t("the log after record %d was once damaged or missing, and was set aside", seq))
	}
	if r.Imported > 0 {
		came := "records 1 to %d were imported on %s: this machine did not write them, and signed only that they are unchanged since"
		if r.Found {
			came = "records 1 to %d were found here on %s: this machine had not signed them in this place, and signed only that they are unchanged since"
		}
		lines = append(lines, t(came, r.Imported, r.Since.Local().Format("2006-01-02 15:04:05")))
		if r.Covered > r.Imported {
			lines = append(lines, t("records %d to %d match this machine's signature", r.Imported+1, r.Covered))
		}
		return lines
	}
	if r.Covered > 0 {
		return append(lines, t("all records up to %d match this machine's signature", r.Covered))
	}
	return append(lines, t("this machine signed none of them, so a cut-off end would go unnoticed"))
}

// Verify reads the three logs of a session and compares them with heads, oldest first. The error is a
// [*BreakError] if the logs differ from what was written.
func Verify(sources []Source, heads []Head) (Report, error) {
	var report Report
	var still []Head // without heads of records lost later
	for _, h := range heads {
		if h.Imported || h.Found {
			report.Imported, report.Since, report.Found = h.Seq, h.Time, h.Found
		}
		if h.Repaired {
			report.Imported = min(report.Imported, h.Seq)
			report.Lost = append(report.Lost, h.Seq)
			still = slices.DeleteFunc(still, func(old Head) bool { return old.Seq > h.Seq })
		}
		still = append(still, h)
	}
	heads = still
	walks := make([]*logReader, 0, len(sources))
	for _, s := range sources {
		w := &logReader{Source: s, links: make(map[uint64]Link)}
		for _, h := range heads {
			if end := h.Ends[slices.Index(event.AllLogs, s.Log)]; end.Seq > 0 {
				w.links[end.Seq] = Link{}
			}
		}
		if err := w.readAll(); err != nil {
			return report, message.Errorf("read %s: %w", s.Name, err)
		}
		walks = append(walks, w)
		report.Lines += len(w.seqs)
		report.Unchecked += w.unchecked
	}
	if broken := firstBreak(walks, heads); broken != nil {
		return report, broken
	}
	if len(heads) > 0 {
		report.Covered = heads[len(heads)-1].Seq
	}
	if report.Imported == 0 && !report.Since.IsZero() { // the import was cut short, so its extent is unknown
		report.Imported = report.Covered
	}
	return report, nil
}

// logReader reads one log.
type logReader struct {
	Source
	seqs      []uint64
	links     map[uint64]Link // after the records in heads
	unchecked int
	breakErr  *BreakError // why it stopped before the end
	irregular *BreakError // what is wrong with otherwise valid lines
}

// readAll reads the log to its end, or to the first invalid line.
func (w *logReader) readAll() error {
	in := bufio.NewReader(w.Data)
	at := chainState{link: FirstLink(w.Log)}
	odd := 0 // first of the directly preceding lines without a checksum, if lines come before those
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		n := len(w.seqs) + 1
		if errors.Is(err, io.EOF) {
			w.breakErr = &BreakError{File: w.Name, Line: n, Why: "the line is incomplete"}
			return nil
		}
		whole, converted := bytes.CutSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		seq, why := at.advance(whole, w.Log)
		if errors.Is(why, errChecksum) && odd > 0 { // the next line does not follow them
			n, why = odd, errNoChecksum
			w.seqs = w.seqs[:odd-1]
		}
		if why != nil {
			w.breakErr = &BreakError{File: w.Name, Line: n, Why: why.Error()}
			return nil
		}
		switch {
		case !at.lacksChecksum:
			odd = 0
		case odd == 0:
			odd = n
		}
		if converted && w.irregular == nil {
			w.irregular = &BreakError{File: w.Name, Line: n, Record: seq,
				Why: "line endings were changed to CRLF; the records are intact"}
		}
		w.seqs = append(w.seqs, seq)
		if !at.hasChecksum {
			w.unchecked++
		}
		if _, named := w.links[seq]; named {
			w.links[seq] = at.link
		}
	}
}

// chainState is the state of a walk after a line.
type chainState struct {
	Checker
	seq           uint64
	link          Link
	hasChecksum   bool   // the last line has a checksum
	lacksChecksum bool   // it has none, though earlier lines have
	prevHash      string // hash of the last audit log line, as in lines of an earlier format
}

var (
	errChecksum   = errors.New("wrong checksum: the line was changed, or does not follow the line before it")
	errNoChecksum = errors.New("the line has no checksum, though earlier lines do")
	errPrevHash   = errors.New("the line does not follow the line before it")
)

// advance advances to the next line, or says why it is invalid.
func (p *chainState) advance(line []byte, log event.Log) (uint64, error) {
	r, prev, err := event.Decode(line, log)
	if err != nil {
		return 0, err
	}
	holds, checked := p.Check(line, p.link)
	switch {
	case !holds:
		return 0, errChecksum
	case p.hasChecksum && !checked && !IsEarlierFormat(line):
		return 0, errNoChecksum
	case r.Seq <= p.seq:
		return 0, message.Errorf("record %d comes after record %d", r.Seq, p.seq)
	case !checked && log == event.LogAudit && prev != p.prevHash:
		return 0, errPrevHash
	}
	p.lacksChecksum = !checked && (p.lacksChecksum || p.hasChecksum)
	p.seq, p.hasChecksum, p.link = r.Seq, checked, LinkAfter(line)
	if log == event.LogAudit {
		sum := sha256.Sum256(line)
		p.prevHash = hex.EncodeToString(sum[:])
	}
	return r.Seq, nil
}

// firstBreak returns the first problem of a session, or nil.
func firstBreak(walks []*logReader, heads []Head) *BreakError {
	var all []uint64
	for _, w := range walks {
		all = append(all, w.seqs...)
	}
	slices.Sort(all)
	missing, last := uint64(1), uint64(0) // the first missing number, and the newest existing one
	for _, seq := range all {
		if seq == missing {
			missing++
		}
		last = seq
	}
	for _, w := range walks {
		if w.breakErr != nil {
			w.breakErr.Record = missing
			return w.breakErr
		}
	}
	if missing <= last {
		e := &BreakError{Record: missing, Why: "the record is missing, though newer records exist"}
		if len(heads) == 0 {
			return e
		}
		for _, w := range walks {
			if end := heads[len(heads)-1].Ends[slices.Index(event.AllLogs, w.Log)]; end.Seq > w.lastSeq() {
				e.File = w.Name
			}
		}
		return e
	}
	for _, w := range walks {
		if w.irregular != nil {
			return w.irregular
		}
	}
	agreed := uint64(0)
	for _, h := range heads {
		for _, w := range walks {
			end := h.Ends[slices.Index(event.AllLogs, w.Log)]
			switch {
			case end.Seq > w.lastSeq():
				return &BreakError{File: w.Name, Record: missing,
					Why: fmt.Sprintf("the log ends before this record, but once reached record %d", end.Seq)}
			case end.Seq > 0 && w.links[end.Seq] != end.Link:
				return &BreakError{File: w.Name, Record: agreed + 1,
					Why: fmt.Sprintf("the record, or one of those up to %d, does not match the signature", end.Seq)}
			}
		}
		agreed = h.Seq
	}
	return nil
}

func (w *logReader) lastSeq() uint64 {
	if len(w.seqs) == 0 {
		return 0
	}
	return w.seqs[len(w.seqs)-1]
}
