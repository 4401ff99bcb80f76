package lineedit

import (
	"fmt"
	"testing"

	"coder/internal/core/chat"
)

func numbered(n byte) *Picture {
	return &Picture{Image: chat.Image{MediaType: "image/png", Data: []byte{n}}, Name: fmt.Sprintf("@/p%d.png", n)}
}

func TestAPictureIsAMarkerInTheLine(t *testing.T) {
	var e Editor
	e.Paste("compare ")
	e.InsertPicture(numbered(1))
	e.Paste(" and ")
	e.InsertPicture(numbered(2))
	if d := e.Draft(); d.Text() != "compare [Image #1] and [Image #2]" || d.String() != d.Text() || d.DiskText() != "compare @/p1.png and @/p2.png" ||
		len(d.Pictures()) != 2 || len(d.Pastes()) != 0 || d.Words().TypedText() != d.Text() {
		t.Errorf("%q, %q, %d pictures", d.Text(), d.DiskText(), len(d.Pictures()))
	}
	e.HandleKey(Key{Name: Backspace}) // the marker goes as one, and its picture with it
	if d := e.Draft(); d.Text() != "compare [Image #1] and " || len(d.Pictures()) != 1 {
		t.Errorf("%q, %d pictures", d.Text(), len(d.Pictures()))
	}
	e.HandleKey(CtrlKey('_'))
	if n := len(e.Draft().Pictures()); n != 2 {
		t.Errorf("%d pictures after undo", n)
	}
	e.SetText("first [Image #2], then [Image #1]") // as in another program
	if p := e.Draft().Pictures(); len(p) != 2 || p[0].Data[0] != 2 || p[1].Data[0] != 1 {
		t.Errorf("pictures %v", p)
	}
	sent := e.HandleKey(Key{Name: Enter}).Draft
	e.InsertPicture(numbered(3)) // a new line begins anew
	if d := Join(e.Draft(), sent); d.Text() != "[Image #1]\nfirst [Image #2], then [Image #3]" && len(d.Pictures()) != 3 {
		t.Errorf("%q", d.Text())
	}
	e.HandleKey(Key{Name: Up})
	if d := e.Draft(); len(d.Pictures()) != 2 {
		t.Errorf("recalled %q with %d pictures", d.Text(), len(d.Pictures()))
	}
}
