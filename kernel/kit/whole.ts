/**
 * All bytes of a stream, counted as they arrive, because a declared length is not reliable.
 * @param tooMuch makes the error when there are more than `most` bytes, which ends the read
 */
export async function wholeOf(stream: AsyncIterable<Uint8Array>, most: number, tooMuch: () => Error): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of stream) {
    bytes += chunk.length
    if (bytes > most) throw tooMuch()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
