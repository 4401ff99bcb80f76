package queue

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"coder/fleet/jetstore"
	"coder/internal/core/message"

	"github.com/nats-io/nats.go/jetstream"
)

// A file is stored as chunks, each a subject that holds one message. Its name says
// how many there are and what their sum is, so that whoever trusts the name can
// trust the file. A file is dropped by writing empty chunks: that takes no right to
// delete.
type file struct {
	task, run, kind string
	chunks          int
	sum             string
}

const (
	chunkSize = 512 << 10 // less than a server takes unless it is told otherwise
	maxChunks = 1 << 16
)

func (f file) String() string {
	return strings.Join([]string{"file", f.task, f.run, f.kind, strconv.Itoa(f.chunks), f.sum}, "/")
}

func (f file) subject(n int) string {
	return strings.Join([]string{name, "file", f.task, f.run, f.kind, strconv.Itoa(n)}, ".")
}

func parseFile(s string) (f file, ok bool) {
	p := strings.Split(s, "/")
	if len(p) != 6 || p[0] != "file" || !ValidTask(p[1]) || !ValidName(p[2]) || !ValidName(p[3]) {
		return f, false
	}
	n, err := strconv.Atoi(p[4])
	return file{p[1], p[2], p[3], n, p[5]}, err == nil && n >= 0 && n <= maxChunks
}

// Put stores a file of a task under a name that it returns.
func (q *Queue) Put(ctx context.Context, task, run, kind string, r io.Reader) (name string, err error) {
	f, sum := file{task: task, run: run, kind: kind}, sha256.New()
	for chunk := make([]byte, chunkSize); ; f.chunks++ {
		n, readErr := io.ReadFull(r, chunk)
		if n == 0 && errors.Is(readErr, io.EOF) {
			break
		}
		if readErr != nil && !errors.Is(readErr, io.ErrUnexpectedEOF) {
			return "", message.Errorf("store %s of task %s: %w", kind, task, readErr)
		}
		sum.Write(chunk[:n])
		if _, err := q.js.Publish(ctx, f.subject(f.chunks), chunk[:n]); err != nil {
			return "", message.Errorf("store %s of task %s: %w", kind, task, err)
		}
	}
	f.sum = hex.EncodeToString(sum.Sum(nil))
	return f.String(), nil
}

// Fetch writes a file to w, whole and as its name says, or nothing.
func (q *Queue) Fetch(ctx context.Context, name string, w io.Writer) error {
	f, ok := parseFile(name)
	if !ok {
		return q.fetchOld(ctx, name, w)
	}
	var all bytes.Buffer
	for n := range f.chunks {
		m, err := q.files.GetLastMsgForSubject(ctx, f.subject(n))
		if err != nil {
			return message.Errorf("fetch %s: %w", name, err)
		}
		all.Write(m.Data)
	}
	if sum := sha256.Sum256(all.Bytes()); hex.EncodeToString(sum[:]) != f.sum {
		return message.Errorf("fetch %s: the file was changed or removed", name)
	}
	_, err := w.Write(all.Bytes())
	return err
}

// Drop empties files. What is not there need not be emptied.
func (q *Queue) Drop(ctx context.Context, names ...string) error {
	for _, name := range names {
		f, ok := parseFile(name)
		for n := 0; ok && n < f.chunks; n++ {
			if _, err := q.js.Publish(ctx, f.subject(n), nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// old is the object store of an earlier release.
const old = "OBJ_" + name + "-file"

// fetchOld writes a file that an earlier release stored.
func (q *Queue) fetchOld(ctx context.Context, file string, w io.Writer) error {
	failed := func(err error) error { return message.Errorf("fetch %s: %w", file, err) }
	stream, err := q.js.Stream(ctx, old)
	if err != nil {
		return failed(err)
	}
	m, err := stream.GetLastMsgForSubject(ctx, "$O."+name+"-file.M."+base64.URLEncoding.EncodeToString([]byte(file)))
	if err != nil {
		return failed(err)
	}
	var info jetstream.ObjectInfo
	if err := json.Unmarshal(m.Data, &info); err != nil || !ValidName(info.NUID) {
		return failed(errors.New("damaged entry"))
	}
	var all bytes.Buffer
	for m, err := range jetstore.Walk(ctx, q.js, old, "$O."+name+"-file.C."+info.NUID) {
		if err != nil {
			return failed(err)
		}
		all.Write(m.Data)
	}
	sum := sha256.Sum256(all.Bytes())
	if info.Digest != "SHA-256="+base64.URLEncoding.EncodeToString(sum[:]) {
		return failed(errors.New("the file was changed or removed"))
	}
	_, err = w.Write(all.Bytes())
	return err
}

// forgetOld removes what an earlier release stored of a task. Only an admin may.
func (q *Queue) forgetOld(ctx context.Context, t Task) error {
	store, err := q.js.ObjectStore(ctx, name+"-file")
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	all, err := store.List(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
		return err
	}
	for _, f := range all {
		if strings.HasPrefix(f.Name, "checkpoint/"+t.ID+"/") || strings.HasPrefix(f.Name, "result/"+t.ID+"/") {
			if err := store.Delete(ctx, f.Name); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
				return err
			}
		}
	}
	return nil
}
