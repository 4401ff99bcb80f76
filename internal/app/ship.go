package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/syslog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"coder/internal/config"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
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

// shipCursor is how far the audit logs were sent to one receiver. It is saved after every batch, so a
// process that is killed sends at most one batch again, under the same ids.
type shipCursor struct {
	To       string              `json:"to"`
	Sessions map[string]shipMark `json:"sessions"`
	Offset   int64               `json:"offset,omitempty"` // of the receiver's file
}

type shipMark struct {
	Began int64  `json:"began"` // time of the first record: an id can be used again after a session was deleted
	Seq   uint64 `json:"seq"`
	Size  int64  `json:"size"` // of the log when it was last read to its end
}

// shipDir is where the cursors are, in the user's folder.
const shipDir = "ship"

// A batch has at most so many records, and about so many bytes.
const (
	maxShipped      = 256
	maxShippedBytes = 1 << 20
	maxCursor       = 64 << 20
	maxDatagram     = 7 << 10 // of a message for syslog
)

// Ship sends the records of all audit logs that it has not sent before: to "syslog", to "otlp", or to a file.
func (a *App) Ship(ctx context.Context, to string) (records, sessions int, err error) {
	if a.Home == "" {
		return 0, 0, inputf("no folder for the cursor: set HOME or CODER_HOME")
	}
	dir := filepath.Join(a.Home, shipDir)
	busy := filepath.Join(dir, "busy") // a separate folder: writing a file locks the file's folder
	if err := os.MkdirAll(busy, 0o700); err != nil {
		return 0, 0, err
	}
	if to != "otlp" && to != "syslog" && !strings.HasPrefix(to, "syslog:") && !filepath.IsAbs(to) {
		to = filepath.Join(a.Env.Dir, to)
	}
	release, err := atomicfile.Lock(busy)
	if err != nil {
		return 0, 0, fmt.Errorf("another process ships the audit logs: %w", err)
	}
	defer release()
	s := &shipment{app: a.Site, path: filepath.Join(dir, shortHash(to)+".json")}
	s.cursor = shipCursor{To: to, Sessions: map[string]shipMark{}}
	text, err := repofile.Own(s.path, maxCursor)
	if err == nil {
		err = json.Unmarshal(text, &s.cursor)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, 0, fmt.Errorf("read the cursor %s: %w", s.path, err)
	}
	if s.to, err = a.receiver(to, &s.cursor); err != nil {
		return 0, 0, err
	}
	err = errors.Join(s.all(ctx), s.to.Close())
	return s.records, s.sessions, err
}

// receiver opens what takes the records.
func (a *Site) receiver(to string, cursor *shipCursor) (receiver, error) {
	path, isSocket := strings.CutPrefix(to, "syslog:")
	switch {
	case to == "otlp":
		return a.collector()
	case to == "syslog":
		w, err := syslog.New(syslog.LOG_INFO|syslog.LOG_AUTH, "coder")
		return toSyslog{w}, err
	case isSocket:
		w, err := syslog.Dial("unixgram", path, syslog.LOG_INFO|syslog.LOG_AUTH, "coder")
		return toSyslog{w}, err
	}
	return openShipFile(to, cursor)
}

// shipment is one call of Ship.
type shipment struct {
	app      *Site
	to       receiver
	path     string
	cursor   shipCursor
	batch    []shipped
	marks    map[string]shipMark // of the sessions in the batch, once it is sent
	bytes    int
	records  int
	sessions int
}

func (s *shipment) all(ctx context.Context) (failed error) {
	s.marks = map[string]shipMark{}
	for _, root := range s.app.Workspaces() {
		store := s.app.storeOf(root)
		for _, id := range sessionsOf(root) {
			if err := s.session(ctx, store, root, id); err != nil {
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
	if f, ok := s.to.(*shipFile); ok && f.size != s.cursor.Offset { // the rest there is of sessions that are gone
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

func (s *shipment) session(ctx context.Context, store *Store, root, id string) error {
	key := shortHash(root) + "/" + id
	mark := s.cursor.Sessions[key]
	info, err := os.Stat(store.LogPath(id, event.Audit))
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == mark.Size {
		return nil
	}
	before, began := s.records+len(s.batch), int64(0)
	for r, err := range store.read(ctx, id, nil, event.Audit) {
		if err != nil {
			return &unreadError{id, err}
		}
		if began == 0 {
			if began = r.Time.UnixMicro(); began != mark.Began {
				mark = shipMark{Began: began}
			}
		}
		if r.Seq <= mark.Seq {
			continue
		}
		text, err := event.Encode(r)
		if err != nil {
			return &unreadError{id, err}
		}
		s.batch = append(s.batch, shipped{
			ID: fmt.Sprintf("%s/%x/%d", key, began, r.Seq), Project: root, Session: id, Time: r.Time, Record: bytes.TrimSpace(text),
		})
		s.bytes += len(text)
		mark.Seq = r.Seq
		s.marks[key] = shipMark{Began: began, Seq: r.Seq}
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
		mark.Size = info.Size() // what came since is read the next time
	}
	s.marks[key] = mark
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
			return fmt.Errorf("ship audit records: %w", err)
		}
	}
	maps.Copy(s.cursor.Sessions, s.marks)
	if f, ok := s.to.(*shipFile); ok && len(f.seen) == 0 { // what the cursor does not know of is looked at again
		s.cursor.Offset = f.size
	}
	s.records += len(s.batch)
	s.batch, s.bytes = nil, 0
	clear(s.marks)
	return s.save()
}

func (s *shipment) save() error {
	if err := atomicfile.Write(s.path, jsonx.Must(s.cursor), 0o600); err != nil {
		return fmt.Errorf("save the cursor: %w", err)
	}
	return nil
}

// shipFile is a file of lines, one for each record.
type shipFile struct {
	*os.File
	size int64
	seen map[string]bool // ids beyond the cursor
}

// openShipFile opens a file for more lines. A process that was killed can have written lines that the cursor
// does not know of; they are not written again, and a line without an end is removed.
func openShipFile(path string, cursor *shipCursor) (*shipFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s := &shipFile{File: f, size: cursor.Offset, seen: map[string]bool{}}
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

func (f *shipFile) take(_ context.Context, batch []shipped) error {
	var text []byte
	for _, one := range batch {
		if f.seen[one.ID] {
			delete(f.seen, one.ID)
			continue
		}
		text = append(append(text, jsonx.Must(one)...), '\n')
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
		text := jsonx.Must(one)
		if len(text) > maxDatagram {
			one.Record, one.Cut = nil, len(one.Record)
			text = jsonx.Must(one)
		}
		if err := w.Info(string(text)); err != nil {
			return err
		}
	}
	return nil
}

// toCollector posts each batch as OTLP logs. A batch that was not accepted as a whole is sent again.
type toCollector struct {
	telemetry.Target
	resource  []telemetry.Attribute
	transport http.RoundTripper
}

func (a *Site) collector() (receiver, error) {
	if !a.permits(func(l config.Limits) *bool { return l.Telemetry }) {
		return nil, configf("telemetry is not allowed by managed settings")
	}
	target, resource, complaint := telemetry.Logs(a.Env.Getenv, Version)
	if target == nil {
		if complaint == "" {
			complaint = "--to otlp needs OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"
		}
		return nil, inputf("%s", complaint)
	}
	return toCollector{*target, resource, &http.Transport{Proxy: http.ProxyFromEnvironment}}, nil
}

func (c toCollector) take(ctx context.Context, batch []shipped) error {
	logs := slices.Collect(func(yield func(telemetry.Log) bool) {
		for _, one := range batch {
			id := telemetry.Attribute{Key: "coder.record.id", Value: one.ID}
			if !yield(telemetry.Log{Time: one.Time, Body: string(jsonx.Must(one)), Attributes: []telemetry.Attribute{id}}) {
				return
			}
		}
	})
	return telemetry.SendLogs(ctx, c.transport, c.Target, c.resource, Version, logs)
}

func (c toCollector) Close() error { return nil }
