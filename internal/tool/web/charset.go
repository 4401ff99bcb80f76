package web

import (
	"strings"
	"sync"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// findEncoding returns the encoding for a page's charset name, as browsers understand it; nil if it is
// unknown. Separators between letters and digits vary, and are ignored.
func findEncoding(charset string) encoding.Encoding {
	return encodings()[strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(charset))]
}

var encodings = sync.OnceValue(func() map[string]encoding.Encoding {
	all := make(map[string]encoding.Encoding)
	for _, e := range []struct {
		names string
		encoding.Encoding
	}{
		{"gbk gb2312 gb231280 csgb2312 csiso58gb231280 isoir58 chinese xgbk cp936 ms936 windows936", simplifiedchinese.GBK},
		{"gb18030", simplifiedchinese.GB18030},
		{"hzgb2312", simplifiedchinese.HZGB2312}, // no longer supported by browsers
		{"big5 big5hkscs cnbig5 csbig5 xxbig5 cp950 windows950", traditionalchinese.Big5},
		{"shiftjis sjis xsjis mskanji csshiftjis windows31j ms932 cp932", japanese.ShiftJIS},
		{"eucjp xeucjp cseucpkdfmtjapanese", japanese.EUCJP},
		{"iso2022jp csiso2022jp", japanese.ISO2022JP},
		{"euckr cseuckr korean ksc5601 ksc56011987 ksc56011989 csksc56011987 isoir149 windows949 cp949", korean.EUCKR},
		{"koi8r koi8 koi cskoi8r", charmap.KOI8R}, {"koi8u koi8ru", charmap.KOI8U},
		{"ibm866 cp866 866 csibm866", charmap.CodePage866},
		{"macintosh mac xmacroman csmacintosh", charmap.Macintosh}, {"xmaccyrillic xmacukrainian", charmap.MacintoshCyrillic},
		{"windows874 dos874 tis620 iso885911 cp874", charmap.Windows874},
		{"windows1250 cp1250 xcp1250", charmap.Windows1250}, {"windows1251 cp1251 xcp1251", charmap.Windows1251},
		{"windows1252 cp1252 xcp1252 ascii usascii ansix341968 iso88591 latin1 l1 isoir100 csisolatin1 cp819 ibm819",
			charmap.Windows1252},
		{"windows1253 cp1253 xcp1253", charmap.Windows1253},
		{"windows1254 cp1254 xcp1254 iso88599 iso885991989 latin5 l5 isoir148 csisolatin5", charmap.Windows1254},
		{"windows1255 cp1255 xcp1255", charmap.Windows1255}, {"windows1256 cp1256 xcp1256", charmap.Windows1256},
		{"windows1257 cp1257 xcp1257", charmap.Windows1257}, {"windows1258 cp1258 xcp1258", charmap.Windows1258},
		{"iso88592 iso885921987 latin2 l2 isoir101 csisolatin2", charmap.ISO8859_2},
		{"iso88593 iso885931988 latin3 l3 isoir109 csisolatin3", charmap.ISO8859_3},
		{"iso88594 iso885941988 latin4 l4 isoir110 csisolatin4", charmap.ISO8859_4},
		{"iso88595 iso885951988 cyrillic isoir144 csisolatincyrillic", charmap.ISO8859_5},
		{"iso88596 iso885961987 arabic asmo708 ecma114 isoir127 csisolatinarabic", charmap.ISO8859_6},
		{"iso88597 iso885971987 greek greek8 suneugreek elot928 ecma118 isoir126 csisolatingreek", charmap.ISO8859_7},
		{"iso88598 iso885981988 hebrew visual isoir138 csisolatinhebrew csiso88598e iso88598e", charmap.ISO8859_8},
		{"iso88598i csiso88598i logical", charmap.ISO8859_8I},
		{"iso885910 latin6 l6 isoir157 csisolatin6", charmap.ISO8859_10},
		{"iso885913", charmap.ISO8859_13}, {"iso885914", charmap.ISO8859_14},
		{"iso885915 latin9 l9 csisolatin9", charmap.ISO8859_15}, {"iso885916", charmap.ISO8859_16},
	} {
		for name := range strings.FieldsSeq(e.names) {
			all[name] = e.Encoding
		}
	}
	return all
})
