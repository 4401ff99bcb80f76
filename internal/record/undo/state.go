package undo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"coder/internal/core/event"
	"coder/internal/host/disk"
	"coder/internal/host/workspace"
	"coder/internal/record/undo/blob"
	"coder/internal/record/undo/gitindex"
)

// A FileState's Hash names a content in the store, unless it is one of these.
// A content that git has is not kept a second time but named git:<object id>;
// a whole tree of files is named tree:<hash>.
const (
	dirHash    = "dir"
	linkHash   = "link"
	gitPrefix  = "git:"
	treePrefix = "tree:"
)

// kind is what stands at a path.
type kind uint8

const (
	isAbsent kind = iota
	isFile
	isDir
	isLink
	isLost // something whose content is not known
)

func kindOf(s event.FileState) kind {
	switch {
	case s.Lost:
		return isLost
	case s.Hash == "":
		return isAbsent
	case s.Hash == dirHash:
		return isDir
	case s.Hash == linkHash:
		return isLink
	}
	return isFile
}

// save describes what stands at rel and keeps its content.
func (k *Keeper) save(rel string) (event.FileState, error) { return k.describe(rel, k.put) }

// Current describes what stands at rel and keeps nothing.
func (k *Keeper) Current(rel string) (event.FileState, error) {
	return k.describe(rel, func(_ string, content io.ReadSeeker) (string, error) { return blob.Digest(content) })
}

// describe says what stands at rel; name turns its content into a hash.
// Whatever cannot be read is lost, and only a store that fails is an error. What
// is reached through a link is not at rel but elsewhere.
func (k *Keeper) describe(rel string, name func(string, io.ReadSeeker) (string, error)) (event.FileState, error) {
	s := event.FileState{Path: rel}
	if _, err := k.ws.Resolve(rel); err != nil {
		s.Lost = true
		return s, nil
	}
	if k.ws.Direct(rel) != nil {
		return s, nil
	}
	info, err := k.ws.Lstat(rel)
	if err != nil {
		s.Lost = !missing(err)
		return s, nil
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		s.Hash, s.Mode = dirHash, uint32(mode.Perm())
	case mode&fs.ModeSymlink != 0:
		s.Hash = linkHash
		s.Link, err = k.ws.Readlink(rel)
		s.Lost = err != nil
	case !mode.IsRegular() || info.Size() > k.o.MaxFile:
		s.Mode, s.Size, s.Lost = uint32(mode.Perm()), info.Size(), true
	default:
		s.Mode, s.Size = uint32(mode.Perm()), info.Size()
		return s, k.describeContent(&s, name)
	}
	return s, nil
}

// stateOf describes what was found at rel, as look does.
func (k *Keeper) stateOf(rel string, f workspace.Found) (event.FileState, error) {
	s := event.FileState{Path: rel}
	if f.Info == nil {
		return s, nil
	}
	switch mode := f.Info.Mode(); {
	case mode.IsDir():
		s.Hash, s.Mode = dirHash, uint32(mode.Perm())
	case mode&fs.ModeSymlink != 0:
		s.Hash, s.Link = linkHash, f.Link
	case f.Content == nil || f.Info.Size() > k.o.MaxFile:
		s.Mode, s.Size, s.Lost = uint32(mode.Perm()), f.Info.Size(), true
	default:
		var err error
		s.Mode, s.Size = uint32(mode.Perm()), f.Info.Size()
		s.Hash, err = blob.Digest(f.Content)
		return s, err
	}
	return s, nil
}

// describeContent adds to s the name of its content.
func (k *Keeper) describeContent(s *event.FileState, name func(string, io.ReadSeeker) (string, error)) error {
	err := k.withContent(s.Path, func(content io.ReadSeeker, size int64) (err error) {
		s.Hash, err = name(s.Path, content)
		s.Size = size
		return err
	})
	switch {
	case errors.Is(err, blob.ErrFull), errors.Is(err, errNoPrivate):
		s.Hash, s.Lost = "", true
		k.warn(fmt.Sprintf("%v: content overwritten now cannot be restored", err))
		return nil
	case errors.Is(err, errUnreadable):
		s.Lost = true
		return nil
	}
	return err
}

// errUnreadable is the error of a file that cannot be read.
var errUnreadable = errors.New("cannot be read")

// small is the size up to which a file is read at once.
const small = 1 << 20

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// withContent calls do with what the file at rel holds. A small file is read
// before, so that do may go over it several times at no cost.
func (k *Keeper) withContent(rel string, do func(content io.ReadSeeker, size int64) error) error {
	f, info, err := k.ws.Open(rel)
	if err != nil {
		return errors.Join(errUnreadable, err)
	}
	defer f.Close()
	if info.Size() > small {
		return do(readable{f}, info.Size())
	}
	b := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(b)
	b.Reset()
	b.Grow(int(info.Size()) + bytes.MinRead)
	if n, err := b.ReadFrom(io.LimitReader(f, small+1)); err != nil {
		return errors.Join(errUnreadable, err)
	} else if n > small { // it grew meanwhile
		return do(readable{f}, n)
	}
	return do(bytes.NewReader(b.Bytes()), int64(b.Len()))
}

// readable is a file whose troubles are its own, not those of the store.
type readable struct{ io.ReadSeeker }

func (r readable) Read(p []byte) (int, error) {
	n, err := r.ReadSeeker.Read(p)
	if err != nil && err != io.EOF {
		err = errors.Join(errUnreadable, err)
	}
	return n, err
}

// reading names contents. It is used by several goroutines at once.
type reading struct {
	k       *Keeper
	clock   workspace.FileTime // before the first is read
	tracked map[string]string  // by path, the objects of git
	pinned  func() func(string) bool
	full    atomic.Bool
}

// name reads a file, finds or keeps its content, and names it. A file that
// cannot be read or kept is lost; the error says why if that is unexpected.
func (r *reading) name(f find) error {
	if f.fresh(r.clock) {
		f.mark(nodeFresh)
	}
	err := r.k.withContent(f.path(), func(content io.ReadSeeker, size int64) error {
		hash, err := r.nameContent(f, content, size)
		f.call(hash)
		return err
	})
	if err == nil {
		return nil
	}
	f.lose()
	f.mark(nodeFresh) // another time, perhaps
	if errors.Is(err, errUnreadable) || errors.Is(err, errNoPrivate) {
		return nil
	}
	return err
}

// nameContent prefers the name by which git knows the content, or knew it when
// the file was last seen. Once there is no room left none is looked for again.
func (r *reading) nameContent(f find, content io.ReadSeeker, size int64) (hash string, err error) {
	var oids []string
	if i, ok := f.old.index(f.base()); ok {
		if oid, git := strings.CutPrefix(unpackHash(f.old.hashes[i]), gitPrefix); git {
			oids = append(oids, oid)
		}
	}
	if oid, ok := r.tracked[f.path()]; ok {
		oids = append(oids, oid)
	}
	for _, oid := range oids {
		if id, err := gitHash(oid, content, size); err != nil {
			return "", err
		} else if id == oid {
			return gitPrefix + oid, nil
		}
	}
	if g := r.k.light; g != nil {
		hash, lasts, err := g.put(content)
		if !lasts {
			f.mark(nodeLight)
		}
		return hash, err
	}
	if r.full.Load() {
		if hash, err = blob.Digest(content); err == nil && !r.k.store.Use(hash) {
			err = blob.ErrFull
		}
		return hash, err
	}
	hash, err = r.k.putSparing(f.path(), content, r.pinned)
	if errors.Is(err, blob.ErrFull) {
		r.full.Store(true)
	}
	return hash, err
}

// put keeps the content of a file, making room for it if need be.
func (k *Keeper) put(rel string, content io.ReadSeeker) (string, error) {
	return k.putSparing(rel, content, k.pinned)
}

// putSparing is put that is told what must not go to make room.
func (k *Keeper) putSparing(rel string, content io.ReadSeeker, pinned func() func(hash string) bool) (string, error) {
	if k.light != nil {
		hash, _, err := k.light.put(content)
		return hash, err
	}
	hash, err := k.store.Put(rel, content)
	if !errors.Is(err, blob.ErrFull) {
		return hash, err
	}
	size, err := content.Seek(0, io.SeekEnd)
	if err != nil {
		return "", errors.Join(errUnreadable, err)
	}
	k.store.Prune(size, pinned())
	return k.store.Put(rel, content)
}

func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// same reports whether a and b are the same thing. What is lost is taken for
// the same if it has the same size and mode.
func (k *Keeper) same(ctx context.Context, a, b event.FileState) bool {
	if kindOf(a) != kindOf(b) {
		return false
	}
	switch kindOf(a) {
	case isAbsent:
		return true
	case isDir:
		return a.Mode == b.Mode
	case isLink:
		return a.Link == b.Link
	case isLost:
		return a.Mode == b.Mode && a.Size == b.Size
	case isFile:
	}
	if a.Mode != b.Mode || a.Hash == b.Hash {
		return a.Mode == b.Mode
	}
	// The same content may have names of different kinds.
	if strings.HasPrefix(a.Hash, gitPrefix) == strings.HasPrefix(b.Hash, gitPrefix) || a.Size != b.Size {
		return false
	}
	x, err := k.ownHash(ctx, a)
	if err != nil {
		return false
	}
	y, err := k.ownHash(ctx, b)
	return err == nil && x == y
}

// ownHash is the hash under which the store has, or would have, the content.
func (k *Keeper) ownHash(ctx context.Context, s event.FileState) (string, error) {
	if !strings.HasPrefix(s.Hash, gitPrefix) {
		return s.Hash, nil
	}
	data, err := k.repoOf(s.Path).content(ctx, s)
	if err != nil {
		return "", err
	}
	return blob.Digest(bytes.NewReader(data))
}

// Content is what the file described by s held, if that is no more than limit
// bytes.
func (k *Keeper) Content(ctx context.Context, s event.FileState, limit int64) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.release()
	if s.Lost || s.Link != "" || s.Size > limit {
		return nil, fmt.Errorf("%s was not saved whole: %w", s.Path, errors.ErrUnsupported)
	}
	f, err := k.content(ctx, s)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

func (k *Keeper) content(ctx context.Context, s event.FileState) (io.ReadCloser, error) {
	if !strings.HasPrefix(s.Hash, gitPrefix) {
		return k.store.Open(s.Hash)
	}
	data, err := k.repoOf(s.Path).content(ctx, s)
	return io.NopCloser(bytes.NewReader(data)), err
}

// stamp is what the file system says about a file without its being read. A
// file with the same stamp is taken for the same, unless it is fresh.
type stamp struct {
	size         int64
	mtime, ctime int64 // nanoseconds
	ino          uint64
	mode         fs.FileMode
}

// The clock of a file system ticks slowly: a file may be changed twice within
// one tick and look the same. Some tick in seconds.
const (
	tick     = 100 * time.Millisecond
	slowTick = 3 * time.Second
)

func stampOf(info fs.FileInfo) stamp {
	s := disk.StampOf(info)
	return stamp{mode: info.Mode(), size: s.Size, mtime: s.Written, ctime: s.Changed, ino: s.Inode}
}

func (s stamp) last() time.Time { return time.Unix(0, max(s.mtime, s.ctime)) }

// fresh reports whether the file may yet change without its stamp changing, if
// that is the time on its file system, or was before it was read.
func (s stamp) fresh(now int64) bool {
	last := s.last().UnixNano()
	wait := tick
	if last%int64(time.Second) == 0 {
		wait = slowTick
	}
	return last > now-int64(wait)
}

func (s stamp) inIndex() gitindex.File {
	return gitindex.File{ModTime: s.mtime, ChangeTime: s.ctime, Ino: uint32(s.ino), Size: uint32(s.size)}
}
