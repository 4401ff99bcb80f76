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
	"coder/internal/core/message"
	"coder/internal/host/disk"
	"coder/internal/host/workspace"
	"coder/internal/record/undo/blob"
	"coder/internal/record/undo/gitindex"
)

// A FileState's Hash names a content in the store, unless it is one of these. A content that git has is
// not saved again but named git:<object id>; a whole tree of files is named tree:<hash>.
const (
	dirHash    = "dir"
	linkHash   = "link"
	gitPrefix  = "git:"
	treePrefix = "tree:"
)

// kind is the kind of file at a path.
type kind uint8

const (
	kindAbsent kind = iota
	kindFile
	kindDir
	kindLink
	kindLost // its content is unknown
)

func kindOf(s event.FileState) kind {
	switch {
	case s.ContentLost:
		return kindLost
	case s.Hash == "":
		return kindAbsent
	case s.Hash == dirHash:
		return kindDir
	case s.Hash == linkHash:
		return kindLink
	}
	return kindFile
}

// saveFile describes the file at rel and saves its content.
func (k *Keeper) saveFile(rel string) (event.FileState, error) {
	return k.describeFile(rel, k.saveContent)
}

// Current describes what stands at rel and keeps nothing.
func (k *Keeper) Current(rel string) (event.FileState, error) {
	return k.describeFile(rel, func(_ string, content io.ReadSeeker) (string, error) { return blob.Digest(content) })
}

// describeFile describes the file at rel; name converts its content into a hash. Whatever cannot be read is
// lost; only a failing store is an error. It does not follow links.
func (k *Keeper) describeFile(rel string, name func(string, io.ReadSeeker) (string, error)) (event.FileState, error) {
	s := event.FileState{Path: rel}
	if _, err := k.ws.Resolve(rel); err != nil {
		s.ContentLost = true
		return s, nil
	}
	if k.ws.CheckNoLinks(rel) != nil {
		return s, nil
	}
	info, err := k.ws.Lstat(rel)
	if err != nil {
		s.ContentLost = !isMissing(err)
		return s, nil
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		s.Hash, s.Mode = dirHash, uint32(mode.Perm())
	case mode&fs.ModeSymlink != 0:
		s.Hash = linkHash
		s.Link, err = k.ws.Readlink(rel)
		s.ContentLost = err != nil
	case !mode.IsRegular() || info.Size() > k.o.MaxFile:
		s.Mode, s.Size, s.ContentLost = uint32(mode.Perm()), info.Size(), true
	default:
		s.Mode, s.Size = uint32(mode.Perm()), info.Size()
		return s, k.describeContent(&s, name)
	}
	return s, nil
}

// foundState describes a file found at rel, like look.
func (k *Keeper) foundState(rel string, f workspace.Existing) (event.FileState, error) {
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
		s.Mode, s.Size, s.ContentLost = uint32(mode.Perm()), f.Info.Size(), true
	default:
		var err error
		s.Mode, s.Size = uint32(mode.Perm()), f.Info.Size()
		s.Hash, err = blob.Digest(f.Content)
		return s, err
	}
	return s, nil
}

// describeContent sets the hash of s's content.
func (k *Keeper) describeContent(s *event.FileState, name func(string, io.ReadSeeker) (string, error)) error {
	err := k.withContent(s.Path, func(content io.ReadSeeker, size int64) (err error) {
		s.Hash, err = name(s.Path, content)
		s.Size = size
		return err
	})
	switch {
	case errors.Is(err, blob.ErrFull), errors.Is(err, errNoPrivate):
		s.Hash, s.ContentLost = "", true
		k.warn(fmt.Sprintf("%v: content overwritten now cannot be restored", err))
		return nil
	case errors.Is(err, errUnreadable):
		s.ContentLost = true
		return nil
	}
	return err
}

// errUnreadable reports a file that cannot be read.
var errUnreadable = errors.New("cannot be read")

// smallFile is the size up to which a file is read in one piece.
const smallFile = 1 << 20

var bufferPool = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// withContent calls do with the content of the file at rel. A small file is loaded first, so that do may
// read it repeatedly at no cost.
func (k *Keeper) withContent(rel string, do func(content io.ReadSeeker, size int64) error) error {
	f, info, err := k.ws.Open(rel)
	if err != nil {
		return errors.Join(errUnreadable, err)
	}
	defer f.Close()
	if info.Size() > smallFile {
		return do(fileReader{f}, info.Size())
	}
	b := bufferPool.Get().(*bytes.Buffer)
	defer bufferPool.Put(b)
	b.Reset()
	b.Grow(int(info.Size()) + bytes.MinRead)
	if n, err := b.ReadFrom(io.LimitReader(f, smallFile+1)); err != nil {
		return errors.Join(errUnreadable, err)
	} else if n > smallFile { // it grew meanwhile
		return do(fileReader{f}, n)
	}
	return do(bytes.NewReader(b.Bytes()), int64(b.Len()))
}

// fileReader marks read errors as the file's, not the store's.
type fileReader struct{ io.ReadSeeker }

func (r fileReader) Read(p []byte) (int, error) {
	n, err := r.ReadSeeker.Read(p)
	if err != nil && err != io.EOF {
		err = errors.Join(errUnreadable, err)
	}
	return n, err
}

// contentHasher determines hashes of contents; it is safe for concurrent use.
type contentHasher struct {
	keeper    *Keeper
	startTime workspace.FileTime // before the first read
	tracked   map[string]string  // path → git object
	pinned    func() func(string) bool
	isFull    atomic.Bool
}

// hashFile reads a file, finds or saves its content, and sets its hash. A file that cannot be read or saved
// is lost; the error says why if that is unexpected.
func (r *contentHasher) hashFile(f pendingFile) error {
	if f.isFresh(r.startTime) {
		f.addFlag(nodeFresh)
	}
	err := r.keeper.withContent(f.path(), func(content io.ReadSeeker, size int64) error {
		hash, err := r.hashContent(f, content, size)
		f.assignHash(hash)
		return err
	})
	if err == nil {
		return nil
	}
	f.markLost()
	f.addFlag(nodeFresh) // perhaps next time
	if errors.Is(err, errUnreadable) || errors.Is(err, errNoPrivate) {
		return nil
	}
	return err
}

// hashContent prefers git's name for the content, current or from the last scan. Once the store is full,
// it does not try again to make room.
func (r *contentHasher) hashContent(f pendingFile, content io.ReadSeeker, size int64) (hash string, err error) {
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
	if g := r.keeper.gatherer; g != nil {
		hash, lasts, err := g.addContent(content)
		if !lasts {
			f.addFlag(nodeLight)
		}
		return hash, err
	}
	if r.isFull.Load() {
		if hash, err = blob.Digest(content); err == nil && !r.keeper.store.MarkUsed(hash) {
			err = blob.ErrFull
		}
		return hash, err
	}
	hash, err = r.keeper.saveContentSparing(f.path(), content, r.pinned)
	if errors.Is(err, blob.ErrFull) {
		r.isFull.Store(true)
	}
	return hash, err
}

// saveContent saves the content of a file, making room if necessary.
func (k *Keeper) saveContent(rel string, content io.ReadSeeker) (string, error) {
	return k.saveContentSparing(rel, content, k.pinned)
}

// saveContentSparing is put with the contents that must not be removed to make room.
func (k *Keeper) saveContentSparing(rel string, content io.ReadSeeker, pinned func() func(hash string) bool) (string,
	error) {
	if k.gatherer != nil {
		hash, _, err := k.gatherer.addContent(content)
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

func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// isSame reports whether a and b are equal. Lost files count as equal if they have the same size and mode.
func (k *Keeper) isSame(ctx context.Context, a, b event.FileState) bool {
	if kindOf(a) != kindOf(b) {
		return false
	}
	switch kindOf(a) {
	case kindAbsent:
		return true
	case kindDir:
		return a.Mode == b.Mode
	case kindLink:
		return a.Link == b.Link
	case kindLost:
		return a.Mode == b.Mode && a.Size == b.Size
	case kindFile:
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

// ownHash returns the hash under which the store has, or would have, the content.
func (k *Keeper) ownHash(ctx context.Context, s event.FileState) (string, error) {
	if !strings.HasPrefix(s.Hash, gitPrefix) {
		return s.Hash, nil
	}
	data, err := k.repoFor(s.Path).content(ctx, s)
	if err != nil {
		return "", err
	}
	return blob.Digest(bytes.NewReader(data))
}

// Content returns the content of the file described by s, if it is at most limit bytes.
func (k *Keeper) Content(ctx context.Context, s event.FileState, limit int64) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.releaseRepos()
	if s.ContentLost || s.Link != "" || s.Size > limit {
		return nil, message.Errorf("%s was only partly saved: %w", s.Path, errors.ErrUnsupported)
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
	data, err := k.repoFor(s.Path).content(ctx, s)
	return io.NopCloser(bytes.NewReader(data)), err
}

// stamp is a file's metadata, read without its content. A file with the same stamp counts as unchanged,
// unless it is fresh.
type stamp struct {
	size         int64
	mtime, ctime int64 // nanoseconds
	ino          uint64
	mode         fs.FileMode
}

// File system clocks tick slowly: a file may change twice within one tick and look the same. Some tick
// in seconds.
const (
	clockTick = 100 * time.Millisecond
	slowTick  = 3 * time.Second
)

func stampOf(info fs.FileInfo) stamp {
	s := disk.StampOf(info)
	return stamp{mode: info.Mode(), size: s.Size, mtime: s.ModTime, ctime: s.ChangeTime, ino: s.Inode}
}

func (s stamp) lastChange() time.Time { return time.Unix(0, max(s.mtime, s.ctime)) }

// isFresh reports whether the file may still change without a new stamp, at the time now on its file
// system, taken before reading it.
func (s stamp) isFresh(now int64) bool {
	last := s.lastChange().UnixNano()
	wait := clockTick
	if last%int64(time.Second) == 0 {
		wait = slowTick
	}
	return last > now-int64(wait)
}

func (s stamp) indexFile() gitindex.File {
	return gitindex.File{ModTime: s.mtime, ChangeTime: s.ctime, Ino: uint32(s.ino), Size: uint32(s.size)}
}
