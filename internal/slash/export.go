package slash

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/core/message"
	"coder/internal/host/atomicfile"
)

// formats lists the export formats.
var formats = []string{"json", "md", "html"}

// Formats returns the export formats.
func Formats() []string { return slices.Clone(formats) }

// Export writes the session to a file, below root unless its path is absolute. It never overwrites a
// file whose name it chose, and another file only if told to. An incomplete file is in own, a folder
// that is swept, if that is on the same file system.
func Export(archive Archive, current, root, own string) Command {
	return Command{
		Name: "export", Args: "[FORMAT] [FILE]", Help: "export this session as json, md or html",
		Run: func(ctx context.Context, c call) (outcome, error) {
			args, force := strings.CutSuffix(c.Args, " force")
			format, path, err := parseExportArgs(args)
			if err != nil {
				return usageError("%v", err)
			}
			if path == "" {
				path = current + "." + format
				if _, err := os.Lstat(filepath.Join(root, path)); !errors.Is(err, fs.ErrNotExist) {
					return usageError("%s already exists; name a file: /export %s FILE", path, format)
				}
			}
			at := path
			if !filepath.IsAbs(at) {
				at = filepath.Join(root, path)
			}
			switch info, err := os.Stat(at); {
			case err == nil && info.IsDir():
				return usageError("%s is a folder", path)
			case err == nil && info.Size() > 0 && !force:
				return usageError("%s already exists; /export %s force overwrites it", path, args)
			}
			if _, err := os.Stat(filepath.Dir(at)); errors.Is(err, fs.ErrNotExist) {
				return usageError("folder %s does not exist", filepath.Dir(path))
			}
			var b bytes.Buffer
			if err := archive.Export(ctx, &b, current, format); err != nil {
				return usageError("%v", err)
			}
			const mode = 0o600 // a conversation may contain secrets
			if err := atomicfile.WriteFrom(own, at, b.Bytes(), mode); err != nil {
				err = atomicfile.Write(at, b.Bytes(), mode)
				if err != nil {
					return usageError("%v", err)
				}
			}
			return showText("written: " + path)
		},
	}
}

// parseExportArgs parses a format, a path, or a format and a path. A word with a separator or an extension
// begins a path.
func parseExportArgs(args string) (format, path string, err error) {
	first, rest, _ := strings.Cut(args, " ")
	switch {
	case slices.Contains(formats, first):
		return first, strings.TrimSpace(rest), nil
	case first == "" || strings.ContainsAny(first, `/\`) || filepath.Ext(first) != "":
		switch ext := strings.ToLower(filepath.Ext(args)); ext {
		case ".json", ".html":
			return ext[1:], args, nil
		case ".htm":
			return "html", args, nil
		}
		return "md", args, nil
	}
	return "", "", message.Errorf("unknown format %q; /export takes json, md or html, and then a file", first)
}
