// The library asks for it.
import "reflect-metadata";
import { webcrypto } from "node:crypto";
import {
  BasicConstraintsExtension,
  type JsonGeneralName,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from "@peculiar/x509";

/** A certificate and the key that belongs to it, as PEM. */
export interface Identity {
  readonly certificate: string;
  readonly key: string;
}

/** Signs certificates that nobody but its own friends trusts. */
export interface Authority {
  readonly certificate: string;
  /** For a server: `names` are what it may be called by. For a client: its common name is the user. */
  issue(commonName: string, names?: JsonGeneralName[]): Promise<Identity>;
}

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const crypto = webcrypto as unknown as Crypto;
const hour = 3_600_000;

/** Makes an authority of its own for one test run. */
export async function createAuthority(commonName: string): Promise<Authority> {
  const keys = await newKeys();
  const root = await X509CertificateGenerator.createSelfSigned(
    {
      name: `CN=${commonName}`,
      ...validity(),
      keys,
      signingAlgorithm: algorithm,
      extensions: [
        new BasicConstraintsExtension(true, 1, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      ],
    },
    crypto,
  );
  return {
    certificate: root.toString("pem"),
    async issue(subject, names = []) {
      const own = await newKeys();
      const certificate = await X509CertificateGenerator.create(
        {
          subject: `CN=${subject}`,
          issuer: root.subject,
          ...validity(),
          publicKey: own.publicKey,
          signingKey: keys.privateKey,
          signingAlgorithm: algorithm,
          extensions: names.length > 0 ? [new SubjectAlternativeNameExtension(names)] : [],
        },
        crypto,
      );
      const key = await crypto.subtle.exportKey("pkcs8", own.privateKey);
      return {
        certificate: certificate.toString("pem"),
        key: `${PemConverter.encode(key, "PRIVATE KEY")}\n`,
      };
    },
  };
}

function newKeys(): Promise<CryptoKeyPair> {
  return crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]) as Promise<CryptoKeyPair>;
}

function validity(): { notBefore: Date; notAfter: Date } {
  const now = Date.now();
  return { notBefore: new Date(now - hour), notAfter: new Date(now + hour) };
}
