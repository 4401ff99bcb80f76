// Package ship sends the records of audit logs elsewhere: to a file, to syslog, or to a collector. It sends each
// record once; a process that is killed sends at most one batch again, under the same ids.
package ship

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/syslog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
	"coder/internal/report/telemetry"
)

// shipped is a record of an audit log on its way elsewhere. Its id is the same each time it is sent.
type shipped struct {
	ID      string          `json:"id"`
	Project string          `json:"project"`
	Session string          `json:"session"`
	Time    time.Time       `json:"time"`
	Record  json.RawMessage `json:"record,omitempty"`
	Cut     int             `json:"cut_bytes,omitempty"` // of a record that is too long for the receiver
}

// receiver takes records. Once take returns nil they are not lost if this process ends.
type receiver interface {
	take(ctx context.Context, batch []shipped) error
	Close() error
}

// cursor is how far the audit logs were sent to one receiver. It is saved after every batch, so a
// process that is killed sends at most one batch again, under the same ids.
type cursor struct {
	To       string          `json:"to"`
	Sessions map[string]mark `json:"sessions"`
	Offset   int64           `json:"offset,omitempty"` // of the receiver's file
}

type mark struct {
	Began int64  `json:"began"` // time of the first record: an id can be used again after a session was deleted
	Seq   uint64 `json:"seq"`
	Size  int64  `json:"size"` // of the log when it was last read to its end
}

// A batch has at most so many records, and about so many bytes.
const (
	maxShipped      = 256
	maxShippedBytes = 1 << 20
	maxCursor       = 64 << 20
	maxDatagram     = 7 << 10 // of a message for syslog
)

// Project is a folder with sessions.
type Project struct {
	Root     string
	Sessions []string
	LogPath  func(session string, l event.Log) string
	Read     func(ctx context.Context, session string, l event.Log) iter.Seq2[event.Record, error]
}

// Collector is a collector for OTLP logs, and what it is told of this program.
type Collector struct {
	telemetry.Target
	Resource []telemetry.Attribute
	Version  string
}

// Options say what to send where.
type Options struct {
	Dir       string    // for the cursors
	To        string    // "syslog", "syslog:" with a socket, or a file's path; unused with a collector
	Collector Collector // used if it has an address
	Projects  iter.Seq[Project]
}

// Ship sends the records of all audit logs that it has not sent before.
func Ship(ctx context.Context, o Options) (records, sessions int, err error) {
	busy := filepath.Join(o.Dir, "busy") // a separate folder: writing a file locks the file's folder
	if err := os.MkdirAll(busy, 0o700); err != nil {
		return 0, 0, err
	}
	release, err := atomicfile.Lock(busy)
	if err != nil {
		return 0, 0, message.Errorf("another process ships the audit logs: %w", err)
	}
	defer release()
	s := &shipment{projects: o.Projects, path: filepath.Join(o.Dir, short(o.To)+".json")}
	s.cursor = cursor{To: o.To, Sessions: map[string]mark{}}
	text, err := repofile.ReadOwn(s.path, maxCursor)
	if err == nil {
		err = json.Unmarshal(text, &s.cursor)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, 0, message.Errorf("read the cursor %s: %w", s.path, err)
	}
	if s.to, err = open(o, &s.cursor); err != nil {
		return 0, 0, err
	}
	err = errors.Join(s.all(ctx), s.to.Close())
	return s.records, s.sessions, err
}

// open opens what takes the records.
func open(o Options, c *cursor) (receiver, error) {
	path, isSocket := strings.CutPrefix(o.To, "syslog:")
	switch {
	case o.Collector.URL != "":
		return toCollector{o.Collector, &http.Transport{Proxy: http.ProxyFromEnvironment}}, nil
	case o.To == "syslog":
		w, err := syslog.New(syslog.LOG_INFO|syslog.LOG_AUTH, "coder")
		return toSyslog{w}, err
	case isSocket:
		w, err := syslog.Dial("unixgram", path, syslog.LOG_INFO|syslog.LOG_AUTH, "coder")
		return toSyslog{w}, err
	}
	return openFile(o.To, c)
}

// short is a short name for a text, the same each time.
func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:12])
}

// shipment is one call of Ship.
type shipment struct {
	projects iter.Seq[Project]
	to       receiver
	path     string
	cursor   cursor
	batch    []shipped
	marks    map[string]mark // of the sessions in the batch, once it is sent
	bytes    int
	records  int
	sessions int
}

func (s *shipment) all(ctx context.Context) (failed error) {
	s.marks = map[string]mark{}
	for p := range s.projects {
		for _, id := range p.Sessions {
			if err := s.session(ctx, p, id); err != nil {
				var unread *unreadError
				if failed = errors.Join(failed, err); !errors.As(err, &unread) {
					return failed
				}
			}
		}
	}
	if failed = errors.Join(failed, s.flush(ctx)); failed != nil {
		return failed
	}
	if f, ok := s.to.(*file); ok && f.size != s.cursor.Offset { // the rest there is of sessions that are gone
		s.cursor.Offset = f.size
		return s.save()
	}
	return nil
}

// unreadError is a log that cannot be read. The others are sent.
type unreadError struct {
	session string
	err     error
}

func (e *unreadError) Error() string { return fmt.Sprintf("session %s: %v", e.session, e.err) }
func (e *unreadError) Unwrap() error { return e.err }

func (s *shipment) session(ctx context.Context, p Project, id string) error {
	key := short(p.Root) + "/" + id
	sent := s.cursor.Sessions[key]
	info, err := os.Stat(p.LogPath(id, event.LogAudit))
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == sent.Size {
		return nil
	}
	before, began := s.records+len(s.batch), int64(0)
	for r, err := range p.Read(ctx, id, event.LogAudit) {
		if err != nil {
			return &unreadError{id, err}
		}
		if began == 0 {
			if began = r.Time.UnixMicro(); began != sent.Began {
				sent = mark{Began: began}
			}
		}
		if r.Seq <= sent.Seq {
			continue
		}
		text, err := event.Encode(r)
		if err != nil {
			return &unreadError{id, err}
		}
		s.batch = append(s.batch, shipped{
			ID: fmt.Sprintf("%s/%x/%d", key, began, r.Seq), Project: p.Root, Session: id, Time: r.Time,
			Record: bytes.TrimSpace(text),
		})
		s.bytes += len(text)
		sent.Seq = r.Seq
		s.marks[key] = mark{Began: began, Seq: r.Seq}
		if len(s.batch) >= maxShipped || s.bytes >= maxShippedBytes {
			if err := s.flush(ctx); err != nil {
				return err
			}
		}
	}
	if s.records+len(s.batch) > before {
		s.sessions++
	}
	if info != nil {
		sent.Size = info.Size() // what came since is read the next time
	}
	s.marks[key] = sent
	return nil
}

// flush sends the batch, then moves the cursor.
func (s *shipment) flush(ctx context.Context) error {
	if len(s.marks) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(s.batch) > 0 {
		if err := s.to.take(ctx, s.batch); err != nil {
			return message.Errorf("ship audit records: %w", err)
		}
	}
	maps.Copy(s.cursor.Sessions, s.marks)
	if f, ok := s.to.(*file); ok && len(f.seen) == 0 { // what the cursor does not know of is looked at again
		s.cursor.Offset = f.size
	}
	s.records += len(s.batch)
	s.batch, s.bytes = nil, 0
	clear(s.marks)
	return s.save()
}

func (s *shipment) save() error {
	if err := atomicfile.Write(s.path, jsonx.MustMarshal(s.cursor), 0o600); err != nil {
		return message.Errorf("save the cursor: %w", err)
	}
	return nil
}

// file is a file of lines, one for each record.
type file struct {
	*os.File
	size int64
	seen map[string]bool // ids beyond the cursor
}

// openFile opens a file for more lines. A process that was killed can have written lines that the cursor
// does not know of; they are not written again, and a line without an end is removed.
func openFile(path string, at *cursor) (*file, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = message.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s := &file{File: f, size: at.Offset, seen: map[string]bool{}}
	if info.Size() < s.size { // another file by now, such as after a rotation
		s.size = 0
	}
	lines := bufio.NewReader(io.NewSectionReader(f, s.size, info.Size()-s.size))
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return s, f.Truncate(s.size)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		var one shipped
		if json.Unmarshal(line, &one) == nil {
			s.seen[one.ID] = true
		}
		s.size += int64(len(line))
	}
}

func (f *file) take(_ context.Context, batch []shipped) error {
	var text []byte
	for _, one := range batch {
		if f.seen[one.ID] {
			delete(f.seen, one.ID)
			continue
		}
		text = append(append(text, jsonx.MustMarshal(one)...), '\n')
	}
	n, err := f.Write(text)
	if err = errors.Join(err, f.Sync()); err != nil {
		return err
	}
	f.size += int64(n)
	return nil
}

// toSyslog sends a message for each record. Nothing confirms a message, so a kill can send a batch again.
type toSyslog struct{ *syslog.Writer }

func (w toSyslog) take(_ context.Context, batch []shipped) error {
	for _, one := range batch {
		text := jsonx.MustMarshal(one)
		if len(text) > maxDatagram {
			one.Record, one.Cut = nil, len(one.Record)
			text = jsonx.MustMarshal(one)
		}
		if err := w.Info(string(text)); err != nil {
			return err
		}
	}
	return nil
}

// toCollector posts each batch as OTLP logs. A batch that was not accepted as a whole is sent again.
type toCollector struct {
	Collector
	transport http.RoundTripper
}

func (c toCollector) take(ctx context.Context, batch []shipped) error {
	logs := slices.Collect(func(yield func(telemetry.Log) bool) {
		for _, one := range batch {
			id := telemetry.Attribute{Key: "coder.record.id", Value: one.ID}
			if !yield(telemetry.Log{Time: one.Time, Body: string(jsonx.MustMarshal(one)),
				Attributes: []telemetry.Attribute{id}}) {
				return
			}
		}
	})
	return telemetry.SendLogs(ctx, c.transport, c.Target, c.Resource, c.Version, logs)
}

func (c toCollector) Close() error { return nil }
