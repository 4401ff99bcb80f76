package web

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding/htmlindex"
)

// What browsers call an encoding is the same one here.
func TestCharsetsAreThoseOfBrowsers(t *testing.T) {
	const sample = "\xa4\xcf\xa5\xb3\xc4\xe3\xba\xc3 abc"
	names := strings.Fields(`gbk gb2312 GB_2312-80 chinese x-gbk gb18030 big5 big5-hkscs cn-big5 shift_jis sjis x-sjis ms_kanji windows-31j
		euc-jp x-euc-jp euc-kr ks_c_5601-1987 korean windows-949 koi8-r koi koi8-u ibm866 cp866 macintosh x-mac-roman x-mac-cyrillic
		windows-874 tis-620 iso-8859-11 us-ascii iso-8859-9 latin5 iso-8859-15 l9 iso_8859-5:1988 cyrillic hebrew iso-8859-8-i greek arabic`)
	for _, part := range []string{"2", "3", "4", "5", "6", "7", "8", "10", "13", "14", "16"} {
		names = append(names, "iso-8859-"+part)
	}
	for page := range 9 {
		names = append(names, "windows-125"+string(rune('0'+page)), "cp125"+string(rune('0'+page)))
	}
	for _, name := range names {
		theirs, err := htmlindex.Get(name)
		if err != nil {
			t.Fatal(name, err)
		}
		ours := findEncoding(name)
		if ours == nil {
			t.Errorf("%s is not known", name)
			continue
		}
		got, _ := ours.NewDecoder().String(sample)
		if want, _ := theirs.NewDecoder().String(sample); got != want {
			t.Errorf("%s: %q, browsers read %q", name, got, want)
		}
	}
	for _, name := range []string{"", "utf-7", "iso-2022-kr", "nonsense", "windows-9999", "latin"} {
		if findEncoding(name) != nil {
			t.Errorf("%q is known", name)
		}
	}
}
