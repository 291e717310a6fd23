package dwarf

import (
	"bytes"
	"debug/dwarf"
)

// The values of attributes (DWARF 5, 7.5.5 and 7.5.6). The standard library's
// reader copies whatever an entry refers to without a bound; its types are used.

// form is how the value of an attribute is written.
type form uint64

const (
	formAddr         form = 0x01
	formBlock2       form = 0x03
	formBlock4       form = 0x04
	formData2        form = 0x05
	formData4        form = 0x06
	formData8        form = 0x07
	formString       form = 0x08
	formBlock        form = 0x09
	formBlock1       form = 0x0a
	formData1        form = 0x0b
	formFlag         form = 0x0c
	formSdata        form = 0x0d
	formStrp         form = 0x0e
	formUdata        form = 0x0f
	formRefAddr      form = 0x10
	formRef1         form = 0x11
	formRef2         form = 0x12
	formRef4         form = 0x13
	formRef8         form = 0x14
	formRefUdata     form = 0x15
	formIndirect     form = 0x16
	formSecOffset    form = 0x17
	formExprloc      form = 0x18
	formFlagPresent  form = 0x19
	formStrx         form = 0x1a
	formAddrx        form = 0x1b
	formRefSup4      form = 0x1c
	formStrpSup      form = 0x1d
	formData16       form = 0x1e
	formLineStrp     form = 0x1f
	formRefSig8      form = 0x20
	formImplicit     form = 0x21
	formLoclistx     form = 0x22
	formRnglistx     form = 0x23
	formRefSup8      form = 0x24
	formStrx1        form = 0x25
	formStrx2        form = 0x26
	formStrx3        form = 0x27
	formStrx4        form = 0x28
	formAddrx1       form = 0x29
	formAddrx2       form = 0x2a
	formAddrx3       form = 0x2b
	formAddrx4       form = 0x2c
	formGNURefAlt    form = 0x1f20
	formGNUStringAlt form = 0x1f21
)

// encoding is how many bytes the number of a form has in the entry: a number of
// bytes, or one of these.
type encoding int8

const (
	asULEB   encoding = -1
	asSLEB   encoding = -2
	asOffset encoding = -3 // 4 bytes, 8 in the 64-bit format
)

// formKind is what the number of a form means.
type formKind uint8

const (
	kindAddress formKind = 1 + iota
	kindAddressIndex
	kindBlock
	kindConst
	kindBytes
	kindImplicit
	kindFlag
	kindPresent
	kindRef     // from the start of the unit
	kindRefAddr // from the start of the section
	kindSignature
	kindInline
	kindStrp
	kindLineStrp
	kindStringIndex
	kindOffset
	kindElsewhere // in a file that is not there
	kindLocList
	kindRangeList
)

// formOf says how the value of each form is read.
var formOf = map[form]struct {
	kind  formKind
	size  encoding
	class dwarf.Class
}{
	formAddr: {kindAddress, 8, dwarf.ClassAddress}, formAddrx: {kindAddressIndex, asULEB, dwarf.ClassAddress},
	formAddrx1: {kindAddressIndex, 1, dwarf.ClassAddress}, formAddrx2: {kindAddressIndex, 2, dwarf.ClassAddress},
	formAddrx3: {kindAddressIndex, 3, dwarf.ClassAddress}, formAddrx4: {kindAddressIndex, 4, dwarf.ClassAddress},
	formBlock1: {kindBlock, 1, dwarf.ClassBlock}, formBlock2: {kindBlock, 2, dwarf.ClassBlock},
	formBlock4: {kindBlock, 4, dwarf.ClassBlock}, formBlock: {kindBlock, asULEB, dwarf.ClassBlock},
	formExprloc: {kindBlock, asULEB, dwarf.ClassExprLoc}, formData16: {kindBytes, 16, dwarf.ClassConstant},
	formData1: {kindConst, 1, dwarf.ClassConstant}, formData2: {kindConst, 2, dwarf.ClassConstant},
	formData4: {kindConst, 4, dwarf.ClassConstant}, formData8: {kindConst, 8, dwarf.ClassConstant},
	formSdata: {kindConst, asSLEB, dwarf.ClassConstant}, formUdata: {kindConst, asULEB, dwarf.ClassConstant},
	formImplicit: {kindImplicit, 0, dwarf.ClassConstant},
	formFlag:     {kindFlag, 1, dwarf.ClassFlag}, formFlagPresent: {kindPresent, 0, dwarf.ClassFlag},
	formRefAddr: {kindRefAddr, asOffset, dwarf.ClassReference}, formRef1: {kindRef, 1, dwarf.ClassReference},
	formRef2: {kindRef, 2, dwarf.ClassReference}, formRef4: {kindRef, 4, dwarf.ClassReference},
	formRef8: {kindRef, 8, dwarf.ClassReference}, formRefUdata: {kindRef, asULEB, dwarf.ClassReference},
	formRefSig8: {kindSignature, 8, dwarf.ClassReferenceSig},
	formString:  {kindInline, 0, dwarf.ClassString}, formStrp: {kindStrp, asOffset, dwarf.ClassString},
	formLineStrp: {kindLineStrp, asOffset, dwarf.ClassString}, formStrx: {kindStringIndex, asULEB, dwarf.ClassString},
	formStrx1: {kindStringIndex, 1, dwarf.ClassString}, formStrx2: {kindStringIndex, 2, dwarf.ClassString},
	formStrx3: {kindStringIndex, 3, dwarf.ClassString}, formStrx4: {kindStringIndex, 4, dwarf.ClassString},
	formSecOffset: {kindOffset, asOffset, dwarf.ClassUnknown},
	formLoclistx:  {kindLocList, asULEB, dwarf.ClassLocList}, formRnglistx: {kindRangeList, asULEB, dwarf.ClassRngList},
	formRefSup4: {kindElsewhere, 4, dwarf.ClassReference}, formRefSup8: {kindElsewhere, 8, dwarf.ClassReference},
	formStrpSup: {kindElsewhere, asOffset, dwarf.ClassString}, formGNURefAlt: {kindElsewhere, asOffset, dwarf.ClassReferenceAlt},
	formGNUStringAlt: {kindElsewhere, asOffset, dwarf.ClassStringAlt},
}

// pointerClass is the class of attributes whose value is an offset in another section
// (DWARF 5, 7.5.5). Before DWARF 4 that is written as a constant.
var pointerClass = map[dwarf.Attr]dwarf.Class{
	dwarf.AttrLocation: dwarf.ClassLocListPtr, dwarf.AttrStmtList: dwarf.ClassLinePtr,
	dwarf.AttrStringLength: dwarf.ClassLocListPtr, dwarf.AttrReturnAddr: dwarf.ClassLocListPtr,
	dwarf.AttrStartScope: dwarf.ClassRangeListPtr, dwarf.AttrDataMemberLoc: dwarf.ClassLocListPtr,
	dwarf.AttrFrameBase: dwarf.ClassLocListPtr, dwarf.AttrMacroInfo: dwarf.ClassMacPtr,
	dwarf.AttrSegment: dwarf.ClassLocListPtr, dwarf.AttrStaticLink: dwarf.ClassLocListPtr,
	dwarf.AttrUseLocation: dwarf.ClassLocListPtr, dwarf.AttrVtableElemLoc: dwarf.ClassLocListPtr,
	dwarf.AttrRanges: dwarf.ClassRangeListPtr, dwarf.AttrStrOffsetsBase: dwarf.ClassStrOffsetsPtr,
	dwarf.AttrAddrBase: dwarf.ClassAddrPtr, dwarf.AttrRnglistsBase: dwarf.ClassRngListsPtr,
	dwarf.AttrLoclistsBase: dwarf.ClassLocListPtr,
}

// expressions are the attributes whose blocks are expressions before DWARF 4, too.
var expressions = map[dwarf.Attr]bool{
	dwarf.AttrLocation: true, dwarf.AttrByteSize: true, dwarf.AttrBitOffset: true, dwarf.AttrBitSize: true,
	dwarf.AttrStringLength: true, dwarf.AttrLowerBound: true, dwarf.AttrReturnAddr: true, dwarf.AttrStrideSize: true,
	dwarf.AttrUpperBound: true, dwarf.AttrCount: true, dwarf.AttrDataMemberLoc: true, dwarf.AttrFrameBase: true,
	dwarf.AttrSegment: true, dwarf.AttrStaticLink: true, dwarf.AttrUseLocation: true, dwarf.AttrVtableElemLoc: true,
	dwarf.AttrAllocated: true, dwarf.AttrAssociated: true, dwarf.AttrDataLocation: true, dwarf.AttrStride: true,
}

func classOf(f form, a dwarf.Attr, version int) dwarf.Class {
	k := formOf[f]
	switch k.kind { //nolint:exhaustive // the class of the others is the form's
	case kindBlock:
		if expressions[a] {
			return dwarf.ClassExprLoc
		}
	case kindConst, kindBytes, kindImplicit:
		if c, ok := pointerClass[a]; ok && version < 4 {
			return c
		}
	case kindOffset:
		return pointerClass[a]
	}
	return k.class
}

// maxString bounds a name, in bytes. The rest of a longer one is left out.
const maxString = 64 << 10

// stringAt returns the string at an offset of a section of strings, charged to the
// meter.
func (m *meter) stringAt(section []byte, off uint64) (string, bool) {
	b, ok := stringIn(section, off)
	if !ok || m.spend(len(b)) != nil {
		return "", false
	}
	return string(b), true
}

// stringIn returns the bytes of the string at an offset of a section of strings.
func stringIn(section []byte, off uint64) ([]byte, bool) {
	if off >= uint64(len(section)) {
		return nil, false
	}
	b := section[off:]
	b = b[:min(len(b), maxString)]
	n := bytes.IndexByte(b, 0)
	if n < 0 {
		if n = len(b); n < maxString {
			return nil, false
		}
	}
	return b[:n], true
}
