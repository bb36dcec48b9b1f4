/** CRC32C (Castagnoli, reflected): Node has none built in. */
const POLYNOMIAL = 0x82f63b78

/** Eight tables of 256: `TABLES[k][b]` is what byte b does k bytes further on. */
const TABLES: readonly Uint32Array[] = (() => {
  const first = Uint32Array.from({ length: 256 }, (_, byte) => {
    let crc = byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1
    return crc >>> 0
  })
  const tables = [first]
  for (let k = 1; k < 8; k++) {
    const before = tables[k - 1] as Uint32Array
    tables.push(before.map(crc => ((crc >>> 8) ^ (first[crc & 255] as number)) >>> 0))
  }
  return tables
})()

/** The checksum of `bytes`; `seed` is the checksum of what went before. */
export function crc32c(bytes: Uint8Array, seed = 0): number {
  const [t0, t1, t2, t3, t4, t5, t6, t7] = TABLES as unknown as [
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
  ]
  const { length } = bytes
  let crc = ~seed
  let i = 0
  for (const end = length - 7; i < end; i += 8) {
    const low =
      crc ^
      ((bytes[i] as number) |
        ((bytes[i + 1] as number) << 8) |
        ((bytes[i + 2] as number) << 16) |
        ((bytes[i + 3] as number) << 24))
    crc =
      (t7[low & 255] as number) ^
      (t6[(low >>> 8) & 255] as number) ^
      (t5[(low >>> 16) & 255] as number) ^
      (t4[low >>> 24] as number) ^
      (t3[bytes[i + 4] as number] as number) ^
      (t2[bytes[i + 5] as number] as number) ^
      (t1[bytes[i + 6] as number] as number) ^
      (t0[bytes[i + 7] as number] as number)
  }
  for (; i < length; i++) crc = (crc >>> 8) ^ (t0[(crc ^ (bytes[i] as number)) & 255] as number)
  return ~crc >>> 0
}
