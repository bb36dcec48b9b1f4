/**
 * The parts of `web-push` that encrypt (RFC 8291) and sign (RFC 8292). Its sending part is not used, because it connects to any
 * address.
 */
declare module 'web-push/src/encryption-helper.js' {
  const helper: {
    encrypt(p256dh: string, auth: string, payload: string, encoding: 'aes128gcm'): { readonly cipherText: Buffer }
  }
  export default helper
}

declare module 'web-push/src/vapid-helper.js' {
  const helper: {
    getVapidHeaders(
      audience: string,
      subject: string,
      publicKey: string,
      privateKey: string,
      encoding: 'aes128gcm',
    ): { readonly Authorization: string }
  }
  export default helper
}
