/** CRC32C (Castagnoli, reflected): Node has none built in. */
const POLYNOMIAL = 0x82f63b78

/** Eight tables of 256 entries in one: `256 * k + b` is the effect of byte b followed by k zero bytes. */
const TABLE = new Uint32Array(8 * 256)
for (let byte = 0; byte < 256; byte++) {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1
  TABLE[byte] = crc
}
for (let at = 256; at < TABLE.length; at++) {
  const before = TABLE[at - 256]!
  TABLE[at] = (before >>> 8) ^ TABLE[before & 255]!
}

/** The checksum of `bytes`; `seed` is the checksum of the preceding bytes. */
export function crc32c(bytes: Uint8Array, seed = 0): number {
  const t = TABLE
  const b = bytes
  const { length } = bytes
  let crc = ~seed
  let i = 0
  for (; i + 8 <= length; i += 8) {
    const low = crc ^ (b[i]! | (b[i + 1]! << 8) | (b[i + 2]! << 16) | (b[i + 3]! << 24))
    crc =
      t[1792 + (low & 255)]! ^
      t[1536 + ((low >>> 8) & 255)]! ^
      t[1280 + ((low >>> 16) & 255)]! ^
      t[1024 + (low >>> 24)]! ^
      t[768 + b[i + 4]!]! ^
      t[512 + b[i + 5]!]! ^
      t[256 + b[i + 6]!]! ^
      t[b[i + 7]!]!
  }
  for (; i < length; i++) crc = (crc >>> 8) ^ t[(crc ^ b[i]!) & 255]!
  return ~crc >>> 0
}
