package workspace

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"coder/internal/core/message"
	"coder/internal/host/disk"
)

const (
	draftBuffer = 32 << 10 // write buffer of a draft
	maxAttempts = 5        // retries if a file changes during the operation
)

// ErrChanged reports a file to be replaced that has changed.
var ErrChanged = errors.New("changed in the meantime")

// ErrBusy reports a file to be replaced that another program is writing: its unwritten data would be
// lost.
var ErrBusy = errors.New("open for writing in another program")

// ErrNotRestored reports that the replaced content could not be put back. Its current name follows.
var ErrNotRestored = errors.New("the original content is now at")

// Existing describes what exists at a name.
type Existing struct {
	Info    fs.FileInfo   // nil if nothing exists
	Link    string        // target, if it is a link
	Content io.ReadSeeker // content of a readable file, else nil

	file        *os.File
	isExclusive bool // no other program has it open for writing, or can open it unnoticed
}

func (f Existing) close() {
	if f.file != nil {
		f.file.Close()
	}
}

// Accept decides whether what exists at a name may be replaced or removed. If something else turns out
// to be affected, everything is put back, and Accept's error is returned. A nil Accept allows anything.
type Accept func(Existing) error

// AcceptNothing accepts only that nothing exists.
func AcceptNothing(f Existing) error {
	if f.Info != nil {
		return ErrChanged
	}
	return nil
}

// AcceptContent accepts a file with this content, or a link with this target.
func AcceptContent(content []byte) Accept {
	return func(f Existing) error {
		switch {
		case f.Info == nil, f.Info.Mode()&fs.ModeSymlink != 0 && f.Link != string(content):
			return ErrChanged
		case !f.Info.Mode().IsRegular():
			return nil
		case f.Content == nil || f.Info.Size() != int64(len(content)):
			return ErrChanged
		}
		if !HasContent(f.Content, content) {
			return ErrChanged
		}
		return nil
	}
}

// HasContent reports whether a file has this content. It reads the file in pieces.
func HasContent(f io.Reader, content []byte) bool {
	piece := make([]byte, min(draftBuffer, len(content)+1))
	for {
		n, err := f.Read(piece)
		if !bytes.HasPrefix(content, piece[:n]) {
			return false
		}
		if content = content[n:]; err != nil {
			return err == io.EOF && len(content) == 0
		}
	}
}

// Swap replaces a file's content if it is still old: no change in between is lost, whether by coder or
// another program. A nil old means no file. Otherwise it returns [ErrChanged]. A link remains a link,
// and its target changes.
func (w *Workspace) Swap(name string, old, data []byte) error {
	accept := AcceptNothing
	if old != nil {
		accept = AcceptContent(old)
	}
	return w.replaceFile(name, data, nil, accept)
}

// Remove removes a file, a link or an empty directory, if accept allows.
func (w *Workspace) Remove(name string, accept Accept) error {
	return w.withParent(name, func(dir *os.Root, base string) error {
		defer lockDir(dir)()
		now, err := inspectAccepted(dir, base, accept)
		if err != nil {
			return err
		}
		defer now.close()
		w.dirSyncer.Add(dir.Name())
		if now.Info == nil || now.Info.IsDir() || accept == nil {
			return dir.Remove(base)
		}
		// Its name records no content hash, so that a sweep removes it only if its content is saved elsewhere.
		return (&draft{ws: w, destDir: dir, sum: sha256.New()}).removeExisting(base, now, accept)
	})
}

// inspectAccepted inspects base and calls accept on it. Until it is closed, nobody can write to it unnoticed.
func inspectAccepted(dir *os.Root, base string, accept Accept) (f Existing, err error) {
	if f, err = inspect(dir, base); err != nil || accept == nil {
		return f, err
	}
	if f.file != nil {
		f.isExclusive, err = acquireLease(f.file)
	}
	if err == nil {
		err = accept(f)
	}
	if err != nil {
		f.close()
	}
	return f, err
}

// checkUnchanged returns an error unless the file now at name is the one found, and nobody is about to write to
// it.
func (f Existing) checkUnchanged(at *os.Root, name string, accept Accept) error {
	now, err := at.Lstat(name)
	switch {
	case err != nil:
		return err
	case !os.SameFile(now, f.Info), now.Mode() != f.Info.Mode(), f.isExclusive && isLeaseWanted(f.file):
		return ErrChanged
	case f.isExclusive || f.file == nil:
		return nil
	}
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return accept(f)
}

// inspect describes what exists at base, without following a link.
func inspect(dir *os.Root, base string) (f Existing, err error) {
	f.Info, err = dir.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Existing{}, nil
	case err != nil:
		return f, err
	case f.Info.Mode()&fs.ModeSymlink != 0:
		f.Link, err = dir.Readlink(base)
		return f, err
	case !f.Info.Mode().IsRegular():
		return f, nil
	}
	file, err := dir.OpenFile(base, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Existing{}, nil
	case err != nil:
		return f, nil // unreadable; an accept that needs the content refuses it
	}
	if f.Info, err = file.Stat(); err != nil {
		file.Close()
		return f, err
	}
	f.file, f.Content = file, file
	return f, nil
}

// draft is a new file or link without its final place. While being written it has no name if the system
// allows that, so that a crash leaves nothing behind; later it has one in the workspace's scratch
// directory, or beside its destination.
type draft struct {
	ws      *Workspace
	destDir *os.Root // its destination
	file    *os.File // nil for a link
	sum     hash.Hash
	nameDir *os.Root // directory of its name
	name    string   // "" while it has none
	info    fs.FileInfo
}

// newDraft writes a file for dir and syncs it: once placed, it survives a crash of the machine.
func (w *Workspace) newDraft(dir *os.Root, fill func(io.Writer) error, old *original) (d *draft, err error) {
	return w.newDraftSynced(dir, fill, old, runNow)
}

func runNow(do func() error) error { return do() }

// newDraftSynced is newDraft with a caller that runs the sync.
func (w *Workspace) newDraftSynced(dir *os.Root, fill func(io.Writer) error, old *original,
	runSync func(sync func() error) error) (d *draft, err error) {
	d = &draft{ws: w, destDir: dir}
	if d.file, err = createUnnamed(dir); err != nil {
		full := err
		if err := d.createNamed(); err != nil {
			if errors.Is(full, syscall.ENOSPC) || errors.Is(full, syscall.EDQUOT) {
				err = full // report the first error; a named file may fail for other reasons
			}
			return nil, message.Errorf("create a temporary file: %w", err)
		}
	}
	d.sum = sha256.New()
	out := bufio.NewWriterSize(io.MultiWriter(d.file, d.sum), draftBuffer)
	if err = fill(out); err == nil {
		err = out.Flush()
	}
	if err == nil && old != nil {
		if old.info != nil {
			if st, ok := old.info.Sys().(*syscall.Stat_t); ok {
				_ = d.file.Chown(int(st.Uid), int(st.Gid)) // only root may, and only root needs to
			}
		}
		setAttributes(d.file, old.attrs)
		err = d.file.Chmod(old.mode)
	}
	if err == nil {
		disk.Trace("sync", filepath.Join(dir.Name(), "draft"))
		err = runSync(d.file.Sync)
	}
	if err == nil {
		d.info, err = d.file.Stat()
	}
	if err != nil {
		d.discard()
		return nil, err
	}
	return d, nil
}

// createNamed creates the file under a name, on systems without unnamed files.
func (d *draft) createNamed() error {
	err := d.withName(func(at *os.Root, name string) (err error) {
		d.file, err = at.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		return err
	})
	if err != nil {
		return syscall.EACCES
	}
	return nil
}

// assignName gives the draft a name that records its content, if it has none yet.
func (d *draft) assignName() error {
	if d.name != "" && (d.sum == nil || strings.Count(d.name, "-") > 2) {
		return nil
	}
	if d.name == "" {
		return d.withName(func(at *os.Root, name string) error { return linkUnnamed(d.file, at, name) })
	}
	name := d.newName()
	err := d.nameDir.Rename(d.name, name)
	if err == nil {
		d.name = name
	}
	return err
}

// withName calls do to name the draft, in the first directory where that works.
func (d *draft) withName(do func(at *os.Root, name string) error) (err error) {
	for _, at := range d.ws.scratchDirs(d.destDir) {
		name := d.newName()
		for err = do(at, name); errors.Is(err, fs.ErrExist); err = do(at, name) {
			name = d.newName()
		}
		if err == nil {
			d.nameDir, d.name = at, name
			return nil
		}
	}
	return err
}

// discard removes the draft, or the content that it replaced.
func (d *draft) discard() {
	if d.file != nil {
		d.file.Close()
	}
	if d.name != "" {
		_ = d.nameDir.Remove(d.name) // swept later on failure
	}
}

// place moves the draft to its place, if accept allows what is there.
func (d *draft) place(dir *os.Root, base string, accept Accept) error {
	defer d.discard()
	defer lockDir(dir)()
	for range maxAttempts {
		now, err := inspectAccepted(dir, base, accept)
		if err != nil {
			return err
		}
		switch {
		case now.Info == nil:
			err = d.placeNew(dir, base)
		case accept == nil:
			err = d.rename(dir, base)
		default:
			err = d.exchange(dir, base, now, accept)
		}
		now.close()
		if err == nil {
			disk.Trace("name", filepath.Join(dir.Name(), base))
			d.ws.dirSyncer.Add(dir.Name())
		}
		if !errors.Is(err, errRaced) {
			return err
		}
	}
	return ErrChanged
}

// errRaced reports a file that appeared or disappeared meanwhile.
var errRaced = errors.New("created or removed in the meantime")

// placeNew moves the draft to an unused name.
func (d *draft) placeNew(dir *os.Root, base string) error {
	var err error
	if d.name == "" {
		err = linkUnnamed(d.file, dir, base)
	} else if err = renameAt(d.nameDir, d.name, dir, base, renameNoReplace); err == nil {
		d.name = ""
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return errRaced
	}
	return d.rename(dir, base) // the system has no better way
}

// rename moves the draft to base, replacing anything there.
func (d *draft) rename(dir *os.Root, base string) error {
	err := d.assignName()
	if err == nil {
		err = renameAt(d.nameDir, d.name, dir, base, 0)
	}
	if err == nil {
		d.name = ""
	}
	return err
}

// exchange swaps the draft with what was found at base, and swaps back if that was something else.
func (d *draft) exchange(dir *os.Root, base string, now Existing, accept Accept) error {
	if err := d.assignName(); err != nil {
		return err
	}
	if d.file != nil { // make other programs wait to write to the draft until it is final
		d.file.Close() // a lease is impossible while the file is open for writing
		d.file = nil
		if f, err := d.nameDir.OpenFile(d.name, os.O_RDONLY|syscall.O_NOFOLLOW, 0); err == nil {
			defer f.Close()
			_, _ = acquireLease(f) // without a lease, concurrent writes may be lost if swapped back
		}
	}
	err := renameAt(d.nameDir, d.name, dir, base, renameExchange)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errRaced
	case isUnsupported(err):
		return d.rename(dir, base) // it was checked just before
	case err != nil:
		return err
	}
	if err := now.checkUnchanged(d.nameDir, d.name, accept); err != nil {
		return errors.Join(err, d.swapBack(dir, base))
	}
	return nil
}

// swapBack puts back the replaced content. A newer file that someone put in the draft's place stays.
func (d *draft) swapBack(dir *os.Root, base string) error {
	there := d.info // the file believed to be at base
	for {
		put, err := d.nameDir.Lstat(d.name)
		if err != nil {
			return err
		}
		if err := renameAt(d.nameDir, d.name, dir, base, renameExchange); err != nil {
			if errors.Is(err, fs.ErrNotExist) { // somebody removed the draft, which is newer
				return nil
			}
			return message.Errorf("put it back: %w; %w %s", err, ErrNotRestored, d.keepReplaced())
		}
		got, err := d.nameDir.Lstat(d.name)
		if err != nil || os.SameFile(got, there) {
			return err
		}
		there = put
	}
}

// keepReplaced leaves the replaced content in the draft's name and returns that name.
func (d *draft) keepReplaced() string {
	name := d.name
	d.name = ""
	return quoteName(path.Join(d.nameDir.Name(), name))
}

// removeExisting removes what was found at base, and puts it back if it was something else.
func (d *draft) removeExisting(base string, now Existing, accept Accept) error {
	err := d.withName(func(at *os.Root, name string) error { return renameAt(d.destDir, base, at, name, 0) })
	if err != nil {
		return err
	}
	defer d.discard()
	if err = now.checkUnchanged(d.nameDir, d.name, accept); err == nil {
		return nil
	}
	if renameAt(d.nameDir, d.name, d.destDir, base, renameNoReplace) == nil {
		d.name = ""
		return err
	}
	return message.Errorf("%w; %w %s", err, ErrNotRestored, d.keepReplaced()) // somebody may have created a newer one
}
