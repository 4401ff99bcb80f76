// Package clipboard copies text to the system's clipboard and reads pictures from it, with the
// system's programs. They run outside the sandbox, by way of a door.
package clipboard

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"coder/internal/core/message"
	"coder/internal/host/program"
)

// use is a program, with the variable that makes it usable; "" if none has to be set.
type use struct {
	variable string
	command  []string
}

var (
	readers = []use{
		{"WAYLAND_DISPLAY", []string{"wl-paste", "--no-newline", "--type", "image/png"}},
		{"DISPLAY", []string{"xclip", "-selection", "clipboard", "-t", "image/png", "-o"}},
		{"", []string{"pngpaste", "-"}},
	}
	writers = []use{
		{"WAYLAND_DISPLAY", []string{"wl-copy"}},
		{"DISPLAY", []string{"xclip", "-selection", "clipboard"}},
		{"", []string{"pbcopy"}},
	}
)

const (
	copyTime    = 5 * time.Second
	longestCopy = 74994 // bytes that terminals take
)

// System is a system's clipboard.
type System struct {
	Door     program.Launcher
	Getenv   func(string) string
	Terminal func(bytes string) // sends bytes to the person's terminal; nil if there is none
}

func (s System) usable(list []use) (all [][]string) {
	for _, u := range list {
		if _, err := s.Door.Find(u.command[0]); err == nil && (u.variable == "" || s.Getenv(u.variable) != "") {
			all = append(all, u.command)
		}
	}
	return all
}

// Picture returns the picture in the clipboard, or the beginning of it, at most most bytes.
func (s System) Picture(ctx context.Context, most int) ([]byte, error) {
	usable := s.usable(readers)
	if len(usable) == 0 {
		return nil, errors.New("install wl-paste (wl-clipboard), xclip or pngpaste to paste images")
	}
	for _, words := range usable {
		out := program.Bounded{Most: most}
		cmd := s.Door.Command(ctx, words[0], words[1:]...)
		cmd.Stdout = &out
		if cmd.Run() == nil && out.Len() > 0 { // otherwise there is no picture in it
			return out.Bytes(), nil
		}
	}
	return nil, errors.New("no image in the clipboard")
}

// Copy puts text into the clipboard: with a program of the system, and over SSH or without
// such a program through the terminal.
func (s System) Copy(ctx context.Context, text string) (how string, err error) {
	ctx, stop := context.WithTimeout(ctx, copyTime)
	defer stop()
	if s.Getenv("SSH_TTY")+s.Getenv("SSH_CONNECTION") == "" {
		for _, words := range s.usable(writers) {
			cmd := s.Door.Command(ctx, words[0], words[1:]...)
			cmd.Stdin = strings.NewReader(text)
			if cmd.Run() == nil {
				return "with " + words[0], nil
			}
		}
	}
	switch {
	case s.Terminal == nil:
		return "", errors.New("install wl-copy (wl-clipboard), xclip or pbcopy to copy")
	case len(text) > longestCopy:
		return "", message.Errorf("%d bytes are too many to copy through the terminal", len(text))
	}
	s.Terminal("\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte(text)) + "\x1b\\")
	return "through the terminal (OSC 52), if it allows that", nil
}
