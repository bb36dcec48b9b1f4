/**
 * All bytes of a stream, counted as they come: what its sender says of their number is not believed.
 * @param tooMuch the error when there are more than `most`; the stream is given up then
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
