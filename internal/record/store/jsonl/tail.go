package jsonl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"coder/internal/core/jsonx"
	"coder/internal/host/repofile"
	"coder/internal/record/session"
)

// A small session file is replaced as a whole. Beyond maxRewrite it is rewritten only occasionally, with
// spare room, and new data is written into that room: the cost of a long session depends only on what is
// new.
//
// A crash during such a write leaves a mixture of old and new. The checksum at the end of the file
// reveals it, because it states the record and content up to which the file was complete.
const (
	maxRewrite = 64 << 10
	headRoom   = 256
	listRoom   = 4 << 10 // plus as much as the list already has
	frameSize  = 256     // upper limit for the text between the parts
)

// ErrTorn reports an incompletely written session file. It can be rebuilt from the logs.
var ErrTorn = errors.New("the session file is incomplete")

// layout describes the last written session file: the position and content of its parts.
type layout struct {
	id       string
	info     fs.FileInfo
	fixedSum uint32 // checksum of what does not change: the tools
	head     region
	local    listRegion
	notes    listRegion
	msgs     listRegion
	size     int64
}

// region is a range of a file and how much of it is used.
type region struct{ from, used, room int64 }

// listRegion is an array with one line per element, and the checksums of the elements.
type listRegion struct {
	region
	sums []uint32
}

// encodedSnapshot is a snapshot ready to be written.
type encodedSnapshot struct {
	id                 string
	head, tools        []byte
	toolSum            uint32
	local, notes, msgs [][]byte
	lastSeq            uint64
}

// encodeSnapshot encodes a snapshot as the lines of a file. It does not check messages encoded in an
// earlier save again.
func encodeSnapshot(s session.Snapshot, before []json.RawMessage) (c encodedSnapshot, err error) {
	c.id, c.lastSeq = s.ID, s.LastSeq
	var head bytes.Buffer
	for i, f := range []struct {
		name  string
		value any
	}{
		{"session_id", s.ID}, {"created_at", s.Created}, {"updated_at", s.Updated}, {"meta", s.Meta}, {"model", s.Model},
		{"at_seq", s.LastSeq},
	} {
		b, err := jsonx.Marshal(f.value)
		if err != nil {
			return c, err
		}
		if i > 0 {
			head.WriteString(",\n")
		}
		fmt.Fprintf(&head, "%q: %s", f.name, b)
	}
	c.head = head.Bytes()
	tools, err := rawLines(s.Tools, nil)
	if err != nil {
		return c, err
	}
	c.tools = joinLines(tools)
	c.toolSum = jsonx.Checksum(0, c.tools)
	if c.local, err = encodeLines(s.Local); err != nil {
		return c, err
	}
	if c.notes, err = encodeLines(s.Notes); err != nil {
		return c, err
	}
	c.msgs, err = rawLines(s.Messages, before)
	return c, err
}

// encodeLines encodes values as JSON, one per line.
func encodeLines[T any](vs []T) (all [][]byte, err error) {
	all = make([][]byte, 0, len(vs))
	for _, v := range vs {
		b, err := jsonx.Marshal(v)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// rawLines is lines for values that are already JSON: they stay unchanged if they are on one line. It
// does not check known ones again.
func rawLines(vs, known []json.RawMessage) (all [][]byte, err error) {
	all = make([][]byte, 0, len(vs))
	for i, v := range vs {
		valid := i < len(known) && len(v) > 0 && len(v) == len(known[i]) && &v[0] == &known[i][0] || json.Valid(v)
		if !valid || bytes.IndexByte(v, '\n') >= 0 {
			if v, err = jsonx.Marshal(v); err != nil {
				return nil, err
			}
		}
		all = append(all, v)
	}
	return all, nil
}

// linesSize returns the length of an array's content.
func linesSize(all [][]byte) (n int) {
	for _, line := range all {
		n += len(line) + len(",\n")
	}
	return n
}

// joinLines returns the content of an array.
func joinLines(all [][]byte) []byte {
	var b bytes.Buffer
	b.Grow(linesSize(all))
	writeLines(&b, all)
	return b.Bytes()
}

func writeLines(b *bytes.Buffer, all [][]byte) {
	for i, line := range all {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		b.Write(line)
	}
}

func lineSums(all [][]byte) (sums []uint32) {
	for _, line := range all {
		sums = append(sums, jsonx.Checksum(0, line))
	}
	return sums
}

// endMark returns the end mark of a file: the newest record in it, and the checksums of its content.
func endMark(at uint64, fixed uint32, parts ...[]uint32) string {
	sum := uint32(0)
	for _, p := range append([][]uint32{{fixed}}, parts...) {
		for _, n := range p {
			sum = jsonx.Checksum(sum, []byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)})
		}
		sum = jsonx.Checksum(sum, []byte{0})
	}
	return fmt.Sprintf("%d-%08x", at, sum)
}

// encode returns the complete file, with spare room if it is long, and its layout.
func (c encodedSnapshot) encode() ([]byte, layout) {
	l := layout{id: c.id, fixedSum: c.toolSum}
	length := len(c.head) + len(c.tools) + linesSize(c.local) + linesSize(c.notes) + linesSize(c.msgs) + frameSize
	room := length >= maxRewrite
	if room {
		length += headRoom + 2*listRoom + linesSize(c.local) + linesSize(c.notes)
	}
	var b bytes.Buffer
	b.Grow(length)
	pad := func(p *region, want int64) {
		p.used, p.room = int64(b.Len())-p.from, int64(b.Len())-p.from
		if room {
			b.Write(bytes.Repeat([]byte{' '}, int(want)))
			p.room += want
		}
	}
	array := func(name string, in *listRegion, all [][]byte) {
		fmt.Fprintf(&b, ",\n%q: [", name)
		in.from, in.sums = int64(b.Len()), lineSums(all)
		writeLines(&b, all)
	}
	b.WriteString("{\n")
	l.head.from = int64(b.Len())
	b.Write(c.head)
	pad(&l.head, headRoom)
	fmt.Fprintf(&b, ",\n\"tools\": [%s]", c.tools)
	for _, a := range []struct {
		name string
		in   *listRegion
		all  [][]byte
	}{{"local", &l.local, c.local}, {"message_notes", &l.notes, c.notes}} {
		array(a.name, a.in, a.all)
		b.WriteByte(']')
		pad(&a.in.region, listRoom+int64(b.Len())-a.in.from)
		a.in.used-- // the bracket moves
	}
	array("messages", &l.msgs, c.msgs)
	l.msgs.used = int64(b.Len()) - l.msgs.from
	b.WriteString(l.closing(c.lastSeq))
	l.size = int64(b.Len())
	return b.Bytes(), l
}

// closing closes the messages and the file.
func (l *layout) closing(at uint64) string {
	return fmt.Sprintf("],\n\"check\": %q\n}\n", endMark(at, l.fixedSum, l.local.sums, l.notes.sums, l.msgs.sums))
}

// pendingWrite is data and its position.
type pendingWrite struct {
	offset int64
	text   []byte
}

// extend computes the writes that turn the file described by l into c, with layout next. ok is false if
// that is not possible in place.
func (l *layout) extend(c encodedSnapshot) (writes []pendingWrite, next layout, ok bool) {
	next = *l
	if c.id != l.id || c.toolSum != l.fixedSum || int64(len(c.head)) > l.head.room {
		return nil, next, false
	}
	head := append(slices.Clone(c.head), bytes.Repeat([]byte{' '}, int(l.head.room)-len(c.head))...)
	writes = append(writes, pendingWrite{l.head.from, head})
	for _, a := range []struct {
		in  *listRegion
		all [][]byte
	}{{&next.local, c.local}, {&next.notes, c.notes}} {
		more, ok := a.in.appendLines(a.all)
		if !ok || a.in.used+1 > a.in.room {
			return nil, next, false
		}
		if len(more) > 0 {
			writes = append(writes, pendingWrite{a.in.from + a.in.used - int64(len(more)), append(more, ']')})
		}
	}
	more, ok := next.msgs.appendLines(c.msgs)
	if !ok {
		return nil, next, false
	}
	last := pendingWrite{next.msgs.from + next.msgs.used - int64(len(more)), append(more, next.closing(c.lastSeq)...)}
	next.size = last.offset + int64(len(last.text))
	return append(writes, last), next, true
}

// appendLines extends the list to all, and returns the new text. ok is false if the earlier elements differ.
func (p *listRegion) appendLines(all [][]byte) (more []byte, ok bool) {
	now := lineSums(all)
	if len(now) < len(p.sums) || !slices.Equal(now[:len(p.sums)], p.sums) {
		return nil, false
	}
	more = joinLines(all[len(p.sums):])
	if len(more) > 0 && len(p.sums) > 0 {
		more = append([]byte{','}, more...)
	}
	p.sums, p.used = now, p.used+int64(len(more))
	return more, true
}

// appendContent writes new data into the file, the head first: while head and end differ, the file is
// incomplete.
func (ss *Sessions) appendContent(c encodedSnapshot) (done bool, err error) {
	l := ss.lastLayout
	if l == nil || l.size < maxRewrite {
		return false, nil
	}
	path := ss.path(c.id)
	if now, err := os.Lstat(path); err != nil || !os.SameFile(now, l.info) || now.Size() != l.size ||
		!now.ModTime().Equal(l.info.ModTime()) {
		return false, nil // somebody else wrote it
	}
	writes, next, ok := l.extend(c)
	if !ok {
		return false, nil
	}
	ss.lastLayout = nil // until the write succeeds
	f, err := ss.disk.Open(path, os.O_WRONLY, fileMode)
	if err != nil {
		return false, err
	}
	for _, w := range writes {
		if _, err = f.WriteAt(w.text, w.offset); err != nil {
			break
		}
	}
	if err == nil {
		err = f.Truncate(next.size)
	}
	if err == nil && ss.fsync == FsyncAlways {
		err = f.Sync()
	}
	if err == nil {
		next.info, err = f.Stat()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	ss.lastLayout = &next
	return true, nil
}

// IsTorn reports whether a file is incomplete, judging by its start and end alone.
func (ss *Sessions) IsTorn(id string) bool {
	if info, err := os.Lstat(ss.path(id)); err != nil || info.Mode().IsRegular() && info.Size() < maxRewrite {
		return false // renamed into place as a whole
	}
	open, err := repofile.NewRoot(ss.dir).Open(id + extension)
	if err != nil {
		return false
	}
	defer open.Close()
	f, ok := open.(io.ReaderAt)
	info, err := open.Stat()
	if !ok || err != nil || info.Size() < maxRewrite {
		return false
	}
	tail := make([]byte, maxEnd)
	if _, err := f.ReadAt(tail, info.Size()-maxEnd); err != nil {
		return false
	}
	i := bytes.LastIndex(tail, []byte("\n\"check\": \""))
	if i < 0 {
		return bytes.IndexByte(tail, 0) >= 0 // an older file has none
	}
	var at, head uint64
	var sum uint32
	if n, err := fmt.Sscanf(string(tail[i:]), "\n\"check\": \"%d-%08x\"\n}\n", &at, &sum); n != 2 || err != nil {
		return true
	}
	begin := make([]byte, maxHead)
	n, _ := f.ReadAt(begin, 0)
	begin = begin[:n]
	if i = bytes.Index(begin, []byte("\n\"at_seq\": ")); i < 0 {
		return true
	}
	_, err = fmt.Sscanf(string(begin[i:]), "\n\"at_seq\": %d", &head)
	return err != nil || head != at
}

// Limits for the length of a file's end and head.
const (
	maxEnd  = 64
	maxHead = 64 << 10
)

// verifyChecksum compares a loaded snapshot with its checksum. It accepts files without one.
func verifyChecksum(s session.Snapshot, want string) error {
	if want == "" {
		return nil
	}
	c, err := encodeSnapshot(s, nil)
	if err != nil {
		return err
	}
	if got := endMark(c.lastSeq, c.toolSum, lineSums(c.local), lineSums(c.notes), lineSums(c.msgs)); got != want {
		return ErrTorn
	}
	return nil
}
