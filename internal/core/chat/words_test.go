package chat_test

import (
	"testing"

	"coder/internal/core/chat"
)

func TestOnlyWhatAPersonWroteIsACommand(t *testing.T) {
	for o, want := range map[chat.Origin]bool{
		chat.OriginTyped: true, chat.OriginLine: true, chat.OriginUnknown: true,
		chat.OriginPasted: false, chat.OriginStdin: false, chat.OriginLinked: false, chat.OriginAttached: false, chat.OriginComposed: false,
	} {
		w := append(chat.NewUserText(chat.OriginTyped, " \n"), chat.TextPiece{Origin: o, Text: "/mode yolo"})
		if w.CanBeCommand() != want || w.Text() != " \n/mode yolo" || w.Trim().Text() != "/mode yolo" {
			t.Errorf("%q: a command: %v, want %v (%q)", o, w.CanBeCommand(), want, w.Trim().Text())
		}
	}
}

func TestNamesInTheTextsOfOthersDoNotCount(t *testing.T) {
	w := chat.UserText{{Origin: chat.OriginTyped, Text: "read @a and "}, {Origin: chat.OriginLinked, Text: "@b"}, {Origin: chat.OriginAttached, Text: "@c"}, {Origin: chat.OriginComposed, Text: "@d"}}
	if got := w.MentionText(); got != "read @a and @b\n\n" || w.Text() != "read @a and @b@c@d" {
		t.Errorf("%q of %q", got, w.Text())
	}
}
