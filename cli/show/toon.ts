import { encode } from '@toon-format/toon'

/** Control characters beyond ASCII and text direction marks; the encoder escapes the others. */
const UNESCAPED = /[\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g

/** TOON, a compact indented table notation for agents, without characters that could act on a terminal. */
export const toToon = (value: unknown): string => encode(value).replace(UNESCAPED, '')
