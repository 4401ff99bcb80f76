package jsonl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"coder/internal/core/jsonx"
	"coder/internal/host/repofile"
	"coder/internal/record/session"
)

// A small session file is replaced as a whole. Beyond wholeUpTo it is rewritten only occasionally, with
// spare room, and new data is written into that room: the cost of a long session depends only on what is
// new.
//
// A crash during such a write leaves a mixture of old and new. The checksum at the end of the file
// reveals it, because it states the record and content up to which the file was complete.
const (
	wholeUpTo = 64 << 10
	headRoom  = 256
	listRoom  = 4 << 10 // plus as much as the list already has
	frameSize = 256     // upper limit for the text between the parts
)

// ErrTorn reports an incompletely written session file. It can be rebuilt from the logs.
var ErrTorn = errors.New("the session file is incomplete")

// layout describes the last written session file: the position and content of its parts.
type layout struct {
	id    string
	info  fs.FileInfo
	fixed uint32 // checksum of what does not change: the tools
	head  part
	local list
	notes list
	msgs  list
	size  int64
}

// part is a range of a file and how much of it is used.
type part struct{ from, used, room int64 }

// list is an array with one line per element, and the checksums of the elements.
type list struct {
	part
	sums []uint32
}

var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// content is a snapshot ready to be written.
type content struct {
	id                 string
	head, tools        []byte
	toolSum            uint32
	local, notes, msgs [][]byte
	at                 uint64
}

// encodeSnapshot encodes a snapshot as the lines of a file. It does not check messages encoded in an
// earlier save again.
func encodeSnapshot(s session.Snapshot, before []json.RawMessage) (c content, err error) {
	c.id, c.at = s.ID, s.At
	var head bytes.Buffer
	for i, f := range []struct {
		name  string
		value any
	}{
		{"session_id", s.ID}, {"created_at", s.Created}, {"updated_at", s.Updated}, {"meta", s.Meta}, {"model", s.Model}, {"at_seq", s.At},
	} {
		b, err := jsonx.JSON(f.value)
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
	c.tools = joined(tools)
	c.toolSum = crc32.Checksum(c.tools, castagnoli())
	if c.local, err = lines(s.Local); err != nil {
		return c, err
	}
	if c.notes, err = lines(s.Notes); err != nil {
		return c, err
	}
	c.msgs, err = rawLines(s.Messages, before)
	return c, err
}

// lines encodes values as JSON, one per line.
func lines[T any](vs []T) (all [][]byte, err error) {
	all = make([][]byte, 0, len(vs))
	for _, v := range vs {
		b, err := jsonx.JSON(v)
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
			if v, err = jsonx.JSON(v); err != nil {
				return nil, err
			}
		}
		all = append(all, v)
	}
	return all, nil
}

// size returns the length of an array's content.
func size(all [][]byte) (n int) {
	for _, line := range all {
		n += len(line) + len(",\n")
	}
	return n
}

// joined returns the content of an array.
func joined(all [][]byte) []byte {
	var b bytes.Buffer
	b.Grow(size(all))
	join(&b, all)
	return b.Bytes()
}

func join(b *bytes.Buffer, all [][]byte) {
	for i, line := range all {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		b.Write(line)
	}
}

func sums(all [][]byte) (sums []uint32) {
	for _, line := range all {
		sums = append(sums, crc32.Checksum(line, castagnoli()))
	}
	return sums
}

// check returns the end mark of a file: the newest record in it, and the checksums of its content.
func check(at uint64, fixed uint32, parts ...[]uint32) string {
	sum := crc32.New(castagnoli())
	for _, p := range append([][]uint32{{fixed}}, parts...) {
		for _, n := range p {
			_, _ = sum.Write([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)})
		}
		_, _ = sum.Write([]byte{0})
	}
	return fmt.Sprintf("%d-%08x", at, sum.Sum32())
}

// whole returns the complete file, with spare room if it is long, and its layout.
func (c content) whole() ([]byte, layout) {
	l := layout{id: c.id, fixed: c.toolSum}
	length := len(c.head) + len(c.tools) + size(c.local) + size(c.notes) + size(c.msgs) + frameSize
	room := length >= wholeUpTo
	if room {
		length += headRoom + 2*listRoom + size(c.local) + size(c.notes)
	}
	var b bytes.Buffer
	b.Grow(length)
	pad := func(p *part, want int64) {
		p.used, p.room = int64(b.Len())-p.from, int64(b.Len())-p.from
		if room {
			b.Write(bytes.Repeat([]byte{' '}, int(want)))
			p.room += want
		}
	}
	array := func(name string, in *list, all [][]byte) {
		fmt.Fprintf(&b, ",\n%q: [", name)
		in.from, in.sums = int64(b.Len()), sums(all)
		join(&b, all)
	}
	b.WriteString("{\n")
	l.head.from = int64(b.Len())
	b.Write(c.head)
	pad(&l.head, headRoom)
	fmt.Fprintf(&b, ",\n\"tools\": [%s]", c.tools)
	for _, a := range []struct {
		name string
		in   *list
		all  [][]byte
	}{{"local", &l.local, c.local}, {"message_notes", &l.notes, c.notes}} {
		array(a.name, a.in, a.all)
		b.WriteByte(']')
		pad(&a.in.part, listRoom+int64(b.Len())-a.in.from)
		a.in.used-- // the bracket moves
	}
	array("messages", &l.msgs, c.msgs)
	l.msgs.used = int64(b.Len()) - l.msgs.from
	b.WriteString(l.end(c.at))
	l.size = int64(b.Len())
	return b.Bytes(), l
}

// end closes the messages and the file.
func (l *layout) end(at uint64) string {
	return fmt.Sprintf("],\n\"check\": %q\n}\n", check(at, l.fixed, l.local.sums, l.notes.sums, l.msgs.sums))
}

// write is data and its position.
type write struct {
	at   int64
	text []byte
}

// grow computes the writes that turn the file described by l into c, with layout next. ok is false if
// that is not possible in place.
func (l *layout) grow(c content) (writes []write, next layout, ok bool) {
	next = *l
	if c.id != l.id || c.toolSum != l.fixed || int64(len(c.head)) > l.head.room {
		return nil, next, false
	}
	head := append(slices.Clone(c.head), bytes.Repeat([]byte{' '}, int(l.head.room)-len(c.head))...)
	writes = append(writes, write{l.head.from, head})
	for _, a := range []struct {
		in  *list
		all [][]byte
	}{{&next.local, c.local}, {&next.notes, c.notes}} {
		more, ok := a.in.add(a.all)
		if !ok || a.in.used+1 > a.in.room {
			return nil, next, false
		}
		if len(more) > 0 {
			writes = append(writes, write{a.in.from + a.in.used - int64(len(more)), append(more, ']')})
		}
	}
	more, ok := next.msgs.add(c.msgs)
	if !ok {
		return nil, next, false
	}
	last := write{next.msgs.from + next.msgs.used - int64(len(more)), append(more, next.end(c.at)...)}
	next.size = last.at + int64(len(last.text))
	return append(writes, last), next, true
}

// add extends the list to all, and returns the new text. ok is false if the earlier elements differ.
func (p *list) add(all [][]byte) (more []byte, ok bool) {
	now := sums(all)
	if len(now) < len(p.sums) || !slices.Equal(now[:len(p.sums)], p.sums) {
		return nil, false
	}
	more = joined(all[len(p.sums):])
	if len(more) > 0 && len(p.sums) > 0 {
		more = append([]byte{','}, more...)
	}
	p.sums, p.used = now, p.used+int64(len(more))
	return more, true
}

// append writes new data into the file, the head first: while head and end differ, the file is
// incomplete.
func (ss *Sessions) append(c content) (done bool, err error) {
	l := ss.last
	if l == nil || l.size < wholeUpTo {
		return false, nil
	}
	path := ss.path(c.id)
	if now, err := os.Lstat(path); err != nil || !os.SameFile(now, l.info) || now.Size() != l.size || !now.ModTime().Equal(l.info.ModTime()) {
		return false, nil // somebody else wrote it
	}
	writes, next, ok := l.grow(c)
	if !ok {
		return false, nil
	}
	ss.last = nil // until the write succeeds
	f, err := ss.disk.Open(path, os.O_WRONLY, fileMode)
	if err != nil {
		return false, err
	}
	for _, w := range writes {
		if _, err = f.WriteAt(w.text, w.at); err != nil {
			break
		}
	}
	if err == nil {
		err = f.Truncate(next.size)
	}
	if err == nil && ss.fsync == Always {
		err = f.Sync()
	}
	if err == nil {
		next.info, err = f.Stat()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	ss.last = &next
	return true, nil
}

// Torn reports whether a file is incomplete, judging by its start and end alone.
func (ss *Sessions) Torn(id string) bool {
	if info, err := os.Lstat(ss.path(id)); err != nil || info.Mode().IsRegular() && info.Size() < wholeUpTo {
		return false // renamed into place as a whole
	}
	open, err := repofile.Below(ss.dir).Open(id + extension)
	if err != nil {
		return false
	}
	defer open.Close()
	f, ok := open.(io.ReaderAt)
	info, err := open.Stat()
	if !ok || err != nil || info.Size() < wholeUpTo {
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

// verify compares a loaded snapshot with its checksum. It accepts files without one.
func verify(s session.Snapshot, want string) error {
	if want == "" {
		return nil
	}
	c, err := encodeSnapshot(s, nil)
	if err != nil {
		return err
	}
	if got := check(c.at, c.toolSum, sums(c.local), sums(c.notes), sums(c.msgs)); got != want {
		return ErrTorn
	}
	return nil
}
